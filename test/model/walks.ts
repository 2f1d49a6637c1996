import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, it } from 'vitest'
import { anyRun, perform, type Run } from './run.ts'
import { type Services, startServices } from './services.ts'
import { type Roads, type Start, walkRoads } from './starts.ts'

/** A folder in memory where the system offers that: nothing here has to outlive the process. */
const folder = (): string =>
  mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'gatehouse-model-'))

/** The services for the runs of one file. */
export const useServices = (): ((run: Run) => Promise<void>) => {
  const directory = folder()
  const parts: { services?: Services; roads?: Roads } = {}
  beforeAll(async () => {
    parts.services = await startServices(directory)
    parts.roads = await walkRoads(parts.services)
  })
  afterAll(async () => {
    await parts.services?.close()
    rmSync(directory, { recursive: true, force: true })
  })
  return (run) => {
    if (!parts.services || !parts.roads) throw new Error('the services have not been started')
    return perform(parts.services, parts.roads, run)
  }
}

const setting = (name: string): number | undefined => {
  const text = process.env[name]
  return text === undefined ? undefined : Number(text)
}

/**
 * Walks at random from the given starts. `GATEHOUSE_MODEL_RUNS` says how often; a failure names its seed and path, which
 * `GATEHOUSE_MODEL_SEED` and `GATEHOUSE_MODEL_PATH` repeat.
 */
export const walkFrom = (starts: readonly Start[], runs: number): void => {
  const run = useServices()
  const numRuns = setting('GATEHOUSE_MODEL_RUNS') ?? runs
  const seed = setting('GATEHOUSE_MODEL_SEED')
  const path = process.env.GATEHOUSE_MODEL_PATH
  it(`holds in ${numRuns} random walks from ${starts.join(', ')}`, async () => {
    await fc.assert(fc.asyncProperty(anyRun(starts), run), {
      numRuns,
      ...(seed === undefined ? {} : { seed }),
      ...(path === undefined ? {} : { path }),
    })
  }, 3_600_000)
}
