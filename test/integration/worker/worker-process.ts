import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { workerMark } from '../../../lib/process/live.ts'
import { killMarked } from '../../../lib/process/run.ts'
import { clearLeftOvers } from '../../../lib/workspace/surroundings/launch.ts'

const root = join(import.meta.dirname, '..', '..', '..')

/** A worker as a process of its own, as its launcher starts it; ended with the test. */
export const startWorker = (options: { api: string; home: string; userHome?: string }) => {
  const id = newId('wrk')
  const runs = join(options.home, 'runs')
  mkdirSync(runs, { recursive: true })
  const child = spawn(process.execPath, [join(root, 'functions', 'worker', 'main.ts')], {
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env.PATH ?? '',
      ...(options.userHome === undefined ? {} : { HOME: options.userHome }),
      [workerMark]: id,
      GATEHOUSE_API: options.api,
      GATEHOUSE_WORKER_ID: id,
      GATEHOUSE_WORKER_HOME: options.home,
      GATEHOUSE_WORKER_RUNS: runs,
      GATEHOUSE_WORKER_TOKEN: 'token',
    },
  })
  const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
    await killMarked(id)
    await clearLeftOvers(runs, async () => false)
  })
  return { id, exited, kill: (signal: NodeJS.Signals) => child.kill(signal) }
}
