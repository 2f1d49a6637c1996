import { resolve } from 'node:path'
import { z } from 'zod'

const projectRoot = resolve(import.meta.dirname, '../..')

/** The environment of `npm start`. */
const environmentSchema = z.object({
  PORT: z.coerce.number().int().min(0).max(65_535).default(8787),
  GATEHOUSE_HOME: z.string().min(1).default(resolve(projectRoot, '.gatehouse')),
  GATEHOUSE_DEMO: z.enum(['0', '1']).default('1'),
  GATEHOUSE_CONCURRENCY: z.coerce.number().int().min(1).max(100).default(8),
})

export type LocalSettings = { port: number; home: string; demo: boolean; concurrency: number }

/** Reads the settings; throws an Error whose message says which variable is wrong. */
export const localSettings = (env: NodeJS.ProcessEnv): LocalSettings => {
  const parsed = environmentSchema.safeParse(env)
  if (!parsed.success) {
    throw new Error(
      parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'),
    )
  }
  const { PORT, GATEHOUSE_HOME, GATEHOUSE_DEMO, GATEHOUSE_CONCURRENCY } = parsed.data
  return {
    port: PORT,
    home: resolve(GATEHOUSE_HOME),
    demo: GATEHOUSE_DEMO === '1',
    concurrency: GATEHOUSE_CONCURRENCY,
  }
}

export { projectRoot }
