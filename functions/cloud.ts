import { z } from 'zod'
import { GatehouseError } from '../lib/errors.ts'
import { connect, serviceSettings } from '../lib/store/clients.ts'
import { type Compute, createPlatform, type Platform } from '../lib/store/platform.ts'

const environmentSchema = z.object({
  SERVICE_VERSION: z.string().min(1),
  CONCURRENCY: z.coerce.number().int().min(1).max(1000).default(25),
})

/** Says plainly that this deployment has no workers: it has no image to run them from. */
const noCompute: Compute = {
  launch: async () => {
    throw new GatehouseError(
      'compute_unavailable',
      'this deployment has no worker image to start workers from',
    )
  },
  running: async () => false,
  list: async () => [],
  stop: async () => {},
  forget: async () => {},
}

/** What a Lambda function works with, made once per process. Throws a ZodError when its environment lacks something. */
export const cloudPlatform = (env: NodeJS.ProcessEnv): { platform: Platform; version: string } => {
  const { SERVICE_VERSION: version, CONCURRENCY: concurrency } = environmentSchema.parse(env)
  const settings = serviceSettings(env)
  const platform = createPlatform({
    clients: connect(settings),
    settings,
    compute: noCompute,
    policy: { allowLocalRepositories: false, concurrency },
  })
  return { platform, version }
}
