import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { localTeam } from '../../infra/local/admin-token.ts'
import { type Stack, type StackOptions, startStack } from '../../infra/local/stack.ts'
import { makeRepository } from '../repositories.ts'
import { requireAllPrefixes } from '../support/prefixes.ts'
import { type Client, createClient, type Start } from './client.ts'

/** One embedded stack for the tests of a file; `api` is there once the first test runs. */
export const useStack = (options: Partial<StackOptions> = {}) => {
  const used: { stack?: Stack; api?: Client; home?: string } = {}
  const faults: string[] = []
  beforeAll(async () => {
    used.home = await mkdtemp(join(tmpdir(), 'gatehouse-e2e-'))
    used.stack = await startStack({
      port: 0,
      home: used.home,
      concurrency: 8,
      log: (line) => faults.push(line),
      ...options,
    })
    used.api = createClient(used.stack.url, used.stack.adminToken)
  })
  afterAll(async () => {
    try {
      if (used.stack) await requireAllPrefixes(used.stack.platform, localTeam)
    } finally {
      await used.stack?.close()
    }
    if (used.home) await rm(used.home, { recursive: true, force: true })
  })
  const need = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the stack is not started')
    return value
  }
  return {
    get api() {
      return need(used.api)
    },
    get stack() {
      return need(used.stack)
    },
    get home() {
      return need(used.home)
    },
    /** Starts a session on a repository of its own, which is done when there is a file `done`; unattended if nothing else is said. */
    begin: async (more: Partial<Start> = {}, files?: Record<string, string>) => {
      const { directory } = makeRepository(files ? { files } : {})
      const { id } = await need(used.api).start({
        ...{ repo: directory, intent: 'Be done', engine_command: 'touch done', mode: 'auto' },
        contract: { checks: [{ name: 'done', command: 'test -e done' }] },
        ...more,
      })
      return { directory, id }
    },
    /** What the stack logged as its own faults. */
    faults,
  }
}
