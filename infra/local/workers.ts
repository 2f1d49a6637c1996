import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { childEnvironment } from '../../lib/process/environment.ts'
import { workerMark } from '../../lib/process/live.ts'
import { killMarked } from '../../lib/process/run.ts'
import type { Compute } from '../../lib/store/platform.ts'
import { unpinBase } from '../../lib/workspace/mirror.ts'
import { parseRepository } from '../../lib/workspace/repository-address.ts'
import { projectRoot } from './settings.ts'
import { createLeftovers } from './storage/leftovers.ts'

/** TERM to KILL for a worker, which ends its own children first and then saves the work that is to be kept. */
const graceMs = 8_000

export type Workers = Compute & {
  /** Tries again to remove what ended runs left and could not be removed. Never rejects. */
  tidy: () => Promise<void>
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
  api: () => string
  /** Told of what could not be tidied up. */
  log: (line: string) => void
  onStopped: (worker: { id: string; team: string; session_id: string; reason: string }) => Promise<void>
}): Workers => {
  const running = new Map<
    string,
    { child: ChildProcess; ended: Promise<void>; team: string; session_id: string }
  >()
  /** Ends that are being told; the stack's services have to outlive them. */
  const telling = new Set<Promise<void>>()
  let closing = false
  const runs = join(options.home, 'worker', 'runs')
  const logs = join(options.home, 'logs')
  const logOf = (sessionId: string) => join(logs, `${sessionId}.log`)
  mkdirSync(logs, { recursive: true })
  const leftovers = createLeftovers(options.log)
  mkdirSync(runs, { recursive: true })
  for (const name of readdirSync(runs)) leftovers.remember(join(runs, name))

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
    // Whatever the worker could not end itself carries its mark; also of a worker of a stack before this one.
    await killMarked(id)
    await leftovers.remove(join(runs, id))
  }

  return {
    launch: async ({ id, team, session_id, token }) => {
      if (closing) throw new Error('the stack is stopping')
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
            GATEHOUSE_TOKEN_ON_STDIN: '1',
            NODE_COMPILE_CACHE: join(options.home, 'compile-cache'),
          },
          projectRoot,
        ),
      })
      closeSync(log)
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      running.set(id, { child, ended, team, session_id })
      const onEnd = async (reason: string) => {
        try {
          await killMarked(id)
        } catch (error) {
          options.log(`worker ${id}: what it left running could not be ended: ${error}`)
        }
        await leftovers.remove(join(runs, id))
        running.delete(id)
        resolve()
        // While the stack stops, nobody is left to write to; the next start finds the worker gone.
        if (closing) return
        const told = options.onStopped({ id, team, session_id, reason })
        telling.add(told)
        try {
          await told
        } catch (error) {
          options.log(`worker ${id}: its end could not be told: ${error}`)
        } finally {
          telling.delete(told)
        }
      }
      child.once('error', (error) => void onEnd(error.message))
      child.once('exit', (code, signal) => void onEnd(signal ?? `exit ${code}`))
      child.stdin?.on('error', () => {})
      // Not by the environment, which every process of the same user can read; it stays open for as long as we live.
      child.stdin?.write(`${token}\n`)
    },
    running: async (id) => running.has(id),
    list: async () => [...running].map(([id, { team, session_id }]) => ({ id, team, session_id })),
    stop,
    tidy: () => leftovers.retry((path) => running.has(basename(path))),
    forget: async ({ repo, session_id }) => {
      const repository = parseRepository(repo, { allowLocal: true })
      await unpinBase({ home: join(options.home, 'worker'), repository, sessionId: session_id })
      await rm(logOf(session_id), { force: true })
    },
    close: async () => {
      closing = true
      await Promise.all([...running.keys()].map(stop))
      await Promise.all(telling)
    },
  }
}
