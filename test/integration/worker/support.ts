import { existsSync } from 'node:fs'
import { expect, vi } from 'vitest'
import type { Command, Result } from '../../../lib/session/protocol.ts'
import { makeRepository, temporaryFolder } from '../../repositories.ts'
import { aCommand, aSession } from './commands.ts'
import { startWorkerApi } from './worker-api.ts'
import { startWorker } from './worker-process.ts'

type Facts = Command['session']
type Of<Outcome extends Result['outcome']> = Extract<Result, { outcome: Outcome }>

// Every test starts a worker and what that starts, on machines that may be busy with others.
vi.setConfig({ testTimeout: 60_000 })

const isOf = <Outcome extends Result['outcome']>(result: Result, outcome: Outcome): result is Of<Outcome> =>
  result.outcome === outcome

/** A result that has to be of one kind. */
export const outcome = <Outcome extends Result['outcome']>(result: Result, kind: Outcome): Of<Outcome> => {
  if (isOf(result, kind)) return result
  throw new Error(JSON.stringify(result))
}

export const eventually = (condition: () => boolean): Promise<unknown> =>
  vi.waitUntil(condition, { timeout: 30_000, interval: 10 })

export const exists = (file: string) => eventually(() => existsSync(file))

/** Where a worker is at home, when it is not in a folder of its own. */
type At = { home: string; userHome: string }

/** A worker with its API and a repository of one file; its commands share one session. */
export const startSession = async (more: Partial<Facts> = {}, at?: At) => {
  const repository = makeRepository({ files: { 'a.txt': 'one\n', '.gitignore': 'ignored\n' } })
  const api = await startWorkerApi()
  const folder = at?.home ?? temporaryFolder()
  const worker = startWorker({ api: api.url, ...(at ?? { home: folder }) })
  const facts = aSession(repository.directory, more)
  const run = (step: Command['step'], over: Partial<Facts> = {}, rest: Partial<Command> = {}) =>
    api.run(aCommand(step, { ...facts, ...over }, rest))
  return {
    ...{ api, worker, folder, repository, facts, run },
    /** Prepares the worktree; what later commands say of its start. */
    prepare: async (over: Partial<Facts> = {}, rest: Partial<Command> = {}): Promise<Partial<Facts>> => {
      const prepared = outcome(await run('Prepare', over, rest), 'Prepare')
      expect(prepared.start_commit).toBe(repository.head)
      return { ...over, start_commit: prepared.start_commit, start_tree: prepared.tree }
    },
  }
}
