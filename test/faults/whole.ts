import { expect } from 'vitest'
import type { Entry } from '../../lib/journal/entry.ts'
import { isTerminal } from '../../lib/session/states.ts'
import type { Client, SessionView } from '../e2e/client.ts'
import type { TestRepository } from '../repositories.ts'
import { requirePrefixes } from '../support/prefixes.ts'
import { type Kept, processesOf } from './kept.ts'

/** Sees a session to its end as a person would who approves whatever waits for an approval. */
export const seeThrough = async (api: Client, id: string): Promise<SessionView> => {
  for (;;) {
    const session = await api.get(id)
    if (isTerminal(session.state)) return session
    if (session.needs_you?.kind === 'approval') await api.approve(id)
    await api.follow(
      id,
      ({ type, data }) =>
        type === 'gate_opened' ||
        (type === 'state_changed' && ['merged', 'failed', 'abandoned'].includes(String(data.to))),
      session.journal_head.sequence,
    )
  }
}

const ofType = (entries: readonly Entry[], type: string) => entries.filter((entry) => entry.type === type)

/** The ids of all workers that a session's journal and item know of. */
export const workersIn = (entries: readonly Entry[], compute: string | undefined): string[] => {
  const named = entries.flatMap(({ type, data }) =>
    type === 'lease_taken' ? [data.worker_id] : type === 'compute_stopped' ? [data.compute_id] : [],
  )
  return [...new Set([...named.map(String), ...(compute ? [compute] : [])])]
}

/**
 * A session that was interrupted, however often, has ended as if it never had been: delivered once, approved once, each
 * iteration begun once, its journal proven, and nothing left behind.
 */
export const requireWhole = async (
  api: Client,
  kept: Kept,
  { id, repository }: { id: string; repository: TestRepository },
): Promise<void> => {
  const item = await kept.settled(id)
  const { document, runtime } = item
  expect({ state: document.state, error: document.error }).toEqual({ state: 'merged', error: null })
  expect(await api.verify(id)).toMatchObject({ ok: true })
  await requirePrefixes(kept.parts, item)
  const entries = await api.journal(id)
  expect(entries.map(({ sequence }) => sequence)).toEqual(entries.map((_, at) => at))

  const branches = repository.git('branch', '--list', 'gatehouse/*', '--format=%(refname:short)').split('\n')
  expect(branches).toEqual([document.result_branch])
  const reviewed = ofType(entries, 'diff_ready').at(-1)?.data.review
  expect(reviewed).toMatchObject({ commit: document.result_commit })
  expect(repository.git('rev-parse', String(branches[0]))).toBe(document.result_commit)
  expect(ofType(entries, 'merge_completed')).toHaveLength(1)
  const decisions = ofType(entries, 'gate_resolved').map(({ data }) => data.action)
  expect(decisions.filter((action) => action === 'approve')).toHaveLength(1)
  const iterations = ofType(entries, 'iteration_started').map(({ data }) => data.n)
  expect(iterations).toEqual([...new Set(iterations)])

  expect(runtime).toMatchObject({ start_pending: false, task: null, command: null })
  expect(runtime.compute?.status).toBe('stopped')
  expect(await processesOf(workersIn(entries, runtime.compute?.id))).toEqual([])
  expect(await kept.slots()).not.toContain(id)
}
