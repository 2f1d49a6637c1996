import { homedir } from 'node:os'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { furnishHome } from '../../lib/process/check-home.ts'
import { removeLaunch } from '../../lib/workspace/surroundings/launch.ts'
import { createPlaces } from '../../lib/workspace/surroundings/place.ts'
import { createClient } from './client.ts'
import { isHandedOver, takeOver } from './hand-over.ts'
import { createReporter } from './reporter.ts'
import { runWorker } from './run.ts'
import { createSession } from './session.ts'
import { Superseded } from './transport.ts'

/** All that a worker is given at its launch. */
const settings = z
  .object({
    GATEHOUSE_API: z.url(),
    GATEHOUSE_WORKER_ID: z.string(),
    /** What workers share: the mirrors. */
    GATEHOUSE_WORKER_HOME: z.string(),
    /** Where their launches have a folder each; above it stands nothing that tools look for. */
    GATEHOUSE_WORKER_RUNS: z.string(),
    GATEHOUSE_WORKER_TOKEN: z.string().optional(),
    /** Set where the launcher writes the token to the standard input and holds that open for as long as it lives. */
    GATEHOUSE_TOKEN_ON_STDIN: z.literal('1').optional(),
  })
  .parse(process.env)

const stop = new AbortController()
const stopBecause = (reason: string) => stop.abort(new Superseded(reason))
process.on('SIGTERM', () => stopBecause('terminated'))
process.on('SIGINT', () => stopBecause('interrupted'))

/** The first line of the standard input; its end is the launcher's. */
const tokenFromStdin = (): Promise<string> => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const lines = createInterface({ input: process.stdin })
  lines.once('line', resolve).once('close', () => {
    stopBecause('the launcher is gone')
    resolve('')
  })
  return promise
}

const token = settings.GATEHOUSE_TOKEN_ON_STDIN
  ? await tokenFromStdin()
  : (settings.GATEHOUSE_WORKER_TOKEN ?? '')
const client = createClient({
  api: settings.GATEHOUSE_API,
  token,
  signal: stop.signal,
  onSuperseded: (reason) => stop.abort(reason),
})
const { GATEHOUSE_WORKER_ID: workerId, GATEHOUSE_WORKER_RUNS: runs } = settings
let sessionId: string | null = null
let heartbeat: NodeJS.Timeout | undefined
let exitCode = 0

try {
  // The first sign of life comes before any slow work.
  const { heartbeat_ms, session_id } = await client.lease()
  heartbeat = setInterval(() => {
    client
      .heartbeat()
      .catch((error: unknown) => stopBecause(error instanceof Error ? error.message : String(error)))
  }, heartbeat_ms)
  sessionId = session_id
  const { launch, left } = await takeOver(runs, session_id, workerId)
  const session = createSession({
    home: settings.GATEHOUSE_WORKER_HOME,
    root: launch.folder,
    folder: launch.work,
    places: createPlaces(launch, (home) => furnishHome(home, homedir())),
    userHome: homedir(),
    left,
    workerId,
    client,
    reporter: createReporter(async (batchId, facts) => {
      await client.entries(batchId, facts)
    }),
    signal: stop.signal,
  })
  await runWorker(session)
} catch (error) {
  if (!(error instanceof Superseded) && !stop.signal.aborted) {
    console.error(error)
    exitCode = 1
  }
} finally {
  clearInterval(heartbeat)
  if (sessionId !== null && !(await isHandedOver(runs, sessionId))) await removeLaunch(runs, sessionId)
}
process.exit(exitCode)
