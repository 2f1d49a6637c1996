import { describe, expect, it } from 'vitest'
import { passOver } from '../../../lib/journal/agent/reducer.ts'
import { agentStride, isAgentSnapshotDue, isSnapshotDue } from '../../../lib/journal/snapshot.ts'
import { changeItem } from '../../../lib/session/item.ts'
import { at, newSession, system } from '../../support/sessions.ts'
import { follow, start, userSays } from './agent/walk.ts'

describe('a snapshot is due', () => {
  const session = newSession()
  const events = (before: number, count: number) => {
    const there = { ...session, outbox: [], journal_head: { ...session.journal_head, sequence: before } }
    const facts = Array.from({ length: count }, () => ({
      ...{ type: 'error' as const, data: { message: '' } },
    }))
    return changeItem(there, { actor: system, facts }, at(0)).outbox
  }

  it('behind a step of the session’s life, and never behind nothing', () => {
    expect(isSnapshotDue(session.outbox, 500)).toBe(true)
    expect(isSnapshotDue([], 1)).toBe(false)
  })

  it.each([
    [498, 1, false],
    [499, 1, true],
    [490, 10, true],
    [500, 499, false],
    [500, 500, true],
    [2, 2000, true],
  ])('behind entry %i with %i more events: %s', (before, count, due) => {
    expect(isSnapshotDue(events(before, count), 500)).toBe(due)
  })
})

describe('a snapshot of the agent', () => {
  const said = (sequence: number) =>
    follow(passOver(start(), sequence - 1), { type: 'message_committed', data: { message: userSays(1) } })

  it.each([
    [3, 0, false],
    [4, 0, true],
    [9, 0, true],
    [9, 9, false],
  ])('is due behind a record at %i, the last write having ended at %i: %s', (sequence, since, due) => {
    expect(isAgentSnapshotDue(said(sequence), since, 4)).toBe(due)
  })

  it('is due by the agent’s own records, however much else lies between', () => {
    const one = passOver(said(5), 30)
    expect(isAgentSnapshotDue(one, 20, 4)).toBe(false)
    const two = follow(one, { type: 'message_committed', data: { message: userSays(2) } })
    expect(isAgentSnapshotDue(two, 30, 4)).toBe(true)
  })

  it('is the rarer the longer the journal, and never further back than a share of it', () => {
    expect([0, 1, 3999, 8000, 16_000, 1_000_000].map((sequence) => agentStride(sequence, 500))).toEqual([
      ...[500, 500, 500, 1000, 2000, 64_000],
    ])
    for (let sequence = 1; sequence < 1e7; sequence = Math.ceil(sequence * 1.7))
      expect(agentStride(sequence, 500)).toBeLessThanOrEqual(Math.max(500, sequence / 8))
  })
})
