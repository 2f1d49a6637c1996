import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isHandedOver } from '../../functions/worker/hand-over.ts'
import { childEnvironment } from '../../lib/process/environment.ts'
import { workerMark } from '../../lib/process/live.ts'
import { killMarked } from '../../lib/process/run.ts'
import { startOf } from '../../lib/process/stat.ts'
import type { Compute } from '../../lib/store/platform.ts'
import { unpinBase } from '../../lib/workspace/mirror.ts'
import { parseRepository } from '../../lib/workspace/repository-address.ts'
import { launchFolder, launchHeldBy, removeLaunch } from '../../lib/workspace/surroundings/launch.ts'
import { projectRoot } from './settings.ts'

/** TERM to KILL for a worker, which ends its own children first and then saves the work that is to be kept. */
const graceMs = 8_000

/** How long a folder waits for the session's next worker. */
const handOverMs = 120_000

export type Workers = Compute & {
  /** Whether the folder of a session is in use, or waits for its next worker. */
  holds: (sessionId: string) => boolean
  /** Ends every worker; resolves when none is left. */
  close: () => Promise<void>
}

/**
 * Workers as child processes, each in a group of its own, with nothing of our environment but what any child gets. A
 * worker whose standard input ends knows that we are gone and ends itself. `onStopped` is told of every end.
 */
export const startWorkers = (options: {
  program: string
  home: string
  /** The root of the runs. */
  runs: string
  api: () => string
  /** Told of what went wrong at the end of a worker; nobody waits for it. */
  log: (line: string) => void
  onStopped: (worker: { id: string; team: string; session_id: string; reason: string }) => Promise<void>
}): Workers => {
  const running = new Map<
    string,
    { child: ChildProcess; since: number | null; ended: Promise<void>; team: string; session_id: string }
  >()
  /** Ends that are being told; the stack's services have to outlive them. */
  const telling = new Set<Promise<void>>()
  /** Sessions whose folder waits for their next worker, and since when. */
  const handedOver = new Map<string, number>()
  let closing = false
  const { runs } = options
  const logs = join(options.home, 'logs')
  const logOf = (sessionId: string) => join(logs, `${sessionId}.log`)
  mkdirSync(logs, { recursive: true })

  /** Ends what is left of a worker's run; resolves to how much could not be ended. */
  const endLeft = (id: string, session_id: string | null, since: number | null): Promise<number> =>
    killMarked(id, session_id === null ? undefined : { folder: launchFolder(runs, session_id).folder, since })

  /**
   * Removes the folder of a worker that is gone, unless it is for the session's next worker. What can't be removed (files
   * of another owner, say) is named, and tried again by each round of the sweep: it ends nobody.
   */
  const clean = async (id: string, session_id: string): Promise<void> => {
    try {
      if (await isHandedOver(runs, session_id)) handedOver.set(session_id, Date.now())
      else await removeLaunch(runs, session_id)
    } catch (error) {
      options.log(`worker ${id} of ${session_id}: what it left could not be removed yet: ${error}`)
    }
  }

  const stop = async (id: string): Promise<void> => {
    const worker = running.get(id)
    if (worker) {
      worker.child.kill('SIGTERM')
      const patience = new AbortController()
      await Promise.race([
        worker.ended,
        sleep(graceMs, undefined, { signal: patience.signal }).catch(() => {}),
      ])
      patience.abort()
      if (running.has(id)) worker.child.kill('SIGKILL')
      await worker.ended
    }
    // Whatever the worker could not end itself carries its mark or is in its folder; also of a stack before this one.
    const session_id = worker?.session_id ?? (await launchHeldBy(runs, id))
    const left = await endLeft(id, session_id, worker?.since ?? null)
    if (left > 0) throw new Error(`${left} processes of worker ${id} can’t be ended`)
  }

  return {
    launch: async ({ id, team, session_id, token }) => {
      if (closing) throw new Error('the stack is stopping')
      handedOver.delete(session_id)
      const log = openSync(logOf(session_id), 'a')
      const child = spawn(process.execPath, [options.program], {
        detached: true,
        stdio: ['pipe', log, log],
        env: childEnvironment(
          process.env,
          {
            [workerMark]: id,
            GATEHOUSE_API: options.api(),
            GATEHOUSE_WORKER_ID: id,
            GATEHOUSE_WORKER_HOME: join(options.home, 'worker'),
            GATEHOUSE_WORKER_RUNS: runs,
            GATEHOUSE_TOKEN_ON_STDIN: '1',
            NODE_COMPILE_CACHE: join(options.home, 'compile-cache'),
          },
          projectRoot,
        ),
      })
      closeSync(log)
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      const since = child.pid === undefined ? null : startOf(child.pid)
      running.set(id, { child, since, ended, team, session_id })
      const onEnd = async (reason: string) => {
        const left = await endLeft(id, session_id, since).catch((error: unknown) => {
          options.log(`worker ${id}: what it left running could not be looked for: ${error}`)
          return 1
        })
        await clean(id, session_id)
        running.delete(id)
        resolve()
        // While the stack stops, nobody is left to write to; the next start finds the worker gone.
        if (closing) return
        // Not stopped yet: the sweep finds the worker gone and tries again.
        if (left > 0) return
        const told = options.onStopped({ id, team, session_id, reason })
        telling.add(told)
        await told.finally(() => telling.delete(told))
      }
      const ends = (reason: string) =>
        onEnd(reason).catch((error: unknown) => options.log(`the end of worker ${id}: ${error}`))
      child.once('error', (error) => void ends(error.message))
      child.once('exit', (code, signal) => void ends(signal ?? `exit ${code}`))
      child.stdin?.on('error', () => {})
      // Not by the environment, which every process of the same user can read; it stays open for as long as we live.
      child.stdin?.write(`${token}\n`)
    },
    running: async (id) => running.has(id),
    holds: (sessionId) =>
      [...running.values()].some(({ session_id }) => session_id === sessionId) ||
      Date.now() - (handedOver.get(sessionId) ?? 0) < handOverMs,
    list: async () => [...running].map(([id, { team, session_id }]) => ({ id, team, session_id })),
    stop,
    forget: async ({ repo, session_id }) => {
      const repository = parseRepository(repo, { allowLocal: true })
      await unpinBase({ home: join(options.home, 'worker'), repository, sessionId: session_id })
      await removeLaunch(runs, session_id)
      await rm(logOf(session_id), { force: true })
    },
    close: async () => {
      closing = true
      // What can't be ended now is found by the next start.
      await Promise.allSettled([...running.keys()].map(stop))
      await Promise.all(telling)
    },
  }
}
