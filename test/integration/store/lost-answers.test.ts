import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import type { Change, SessionItem } from '../../../lib/session/item.ts'
import { connect } from '../../../lib/store/clients.ts'
import { transition } from '../../../lib/store/effects.ts'
import { createPlatform, type Platform } from '../../../lib/store/platform.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { temporaryFolder } from '../../repositories.ts'
import { testKeys } from '../../support/keys.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { creationChange, system } from '../../support/sessions.ts'

let pieces: Pieces
/** Another process's view of the same services. */
let other: Platform
let closeOther: () => void
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
  const clients = connect(pieces.settings, testKeys)
  const { compute, policy } = pieces.platform
  other = createPlatform({ clients, settings: pieces.settings, compute, policy })
  closeOther = () => {
    for (const client of [clients.dynamo, clients.s3, clients.sfn]) client.destroy()
  }
})
afterAll(async () => {
  closeOther()
  await pieces.close()
})

let item: SessionItem
beforeEach(async () => {
  const id = { team: 'team', id: newId('ses') }
  const created = await pieces.platform.sessions.create(id, creationChange(id.id, id.team))
  item = await pieces.platform.sessions.commit(created.item, {
    ...{ actor: system, facts: [], runtime: { start_pending: false } },
  })
})

const says = (message: string): Change => ({ actor: system, facts: [{ type: 'error', data: { message } }] })

/** How often each message stands in the session's journal, which has to be whole. */
const told = async (): Promise<Record<string, number>> => {
  await transition(pieces.platform, item, () => null)
  expect((await proveJournal(pieces.platform, item)).ok).toBe(true)
  const entries = await pieces.platform.journals.after(item, -1, 10_000)
  const messages = entries.filter(({ type }) => type === 'error').map(({ data }) => String(data.message))
  return Object.fromEntries(
    [...new Set(messages)].map((message) => [message, messages.filter((one) => one === message).length]),
  )
}

const middleware = 'lostAnswer'
afterEach(() => {
  pieces.clients.dynamo.middlewareStack.remove(middleware)
})

/** The next write is made and its answer lost, so that the SDK repeats it; what is between happens just before or after. */
const loseAnswer = (when: 'before' | 'after', between: () => Promise<unknown>) => {
  const state = { lost: false }
  pieces.clients.dynamo.middlewareStack.add(
    (next, context) => async (args) => {
      if (state.lost || context.commandName !== 'PutItemCommand') return next(args)
      state.lost = true
      if (when === 'before') await between()
      await next(args).catch(() => {})
      if (when === 'after') await between()
      throw Object.assign(new Error('the line broke'), { name: 'TimeoutError' })
    },
    { step: 'finalizeRequest', name: middleware, priority: 'low', override: true },
  )
  return state
}

describe('a write whose answer was lost', () => {
  it('is recognised when another writer has drained it, noted so and written on', async () => {
    const state = loseAnswer('after', async () => {
      await transition(other, item, () => says('theirs'))
      expect((await other.sessions.require(item)).outbox).toEqual([])
    })
    const after = await pieces.platform.sessions.update(item, () => says('mine'))
    expect(state.lost).toBe(true)
    expect(after).toEqual(await other.sessions.require(item))
    expect(await told()).toEqual({ mine: 1, theirs: 1 })
  })

  it('is recognised when another writer has written on and not drained it', async () => {
    loseAnswer('after', () => other.sessions.update(item, () => says('theirs')))
    await pieces.platform.sessions.update(item, () => says('mine'))
    expect(await told()).toEqual({ mine: 1, theirs: 1 })
  })

  it('is made anew when it had lost its race, whether or not its place in the journal is taken by then', async () => {
    for (const write of [
      other.sessions.update,
      (id: SessionItem, decide: () => Change) => transition(other, id, decide),
    ]) {
      loseAnswer('before', () => write(item, () => says('theirs')))
      await pieces.platform.sessions.update(item, () => says('mine'))
    }
    expect(await told()).toEqual({ mine: 2, theirs: 2 })
  })

  it('is recognised without facts too while nothing else was written, and else decided on what is true now', async () => {
    const seen: (string | null)[] = []
    const queue = (time: string) => (now: SessionItem) => {
      seen.push(now.runtime.queued_at)
      return { actor: system, facts: [], runtime: { queued_at: time } }
    }
    const [first, second] = ['2030-01-01T00:00:01.000Z', '2030-01-01T00:00:02.000Z']
    loseAnswer('after', async () => {})
    const once = await pieces.platform.sessions.update(item, queue(first))
    expect(once.revision).toBe(item.revision + 1)
    expect(seen).toEqual([item.runtime.queued_at])
    loseAnswer('after', () => other.sessions.update(item, () => says('theirs')))
    const twice = await pieces.platform.sessions.update(item, queue(second))
    expect(twice.runtime.queued_at).toBe(second)
    expect(seen.slice(1)).toEqual([first, second])
    expect(await told()).toEqual({ theirs: 1 })
  })
})

describe('writers of one session', () => {
  /** Something before each write of a session item that is sent. */
  const beforeEachWrite = (act: () => Promise<unknown>) =>
    pieces.clients.dynamo.middlewareStack.add(
      (next, context) => async (args) => {
        if (context.commandName === 'PutItemCommand') await act()
        return next(args)
      },
      { step: 'finalizeRequest', name: middleware, priority: 'low', override: true },
    )

  it('in one process go one after another and never lose a race to each other', async () => {
    let writes = 0
    beforeEachWrite(async () => {
      writes += 1
    })
    const names = Array.from({ length: 40 }, (_, n) => `m${n}`)
    await Promise.all(names.map((name) => pieces.platform.sessions.update(item, () => says(name))))
    expect(writes).toBe(names.length)
    const counts = await told()
    expect(counts).toEqual(Object.fromEntries(names.map((name) => [name, 1])))
    // In the order of their calls.
    expect(Object.keys(counts)).toEqual(names)
  })

  it('are told after a bounded time that others always came first, and have changed nothing then', async () => {
    let theirs = 0
    vi.useFakeTimers({ toFake: ['performance'] })
    try {
      beforeEachWrite(async () => {
        theirs += 1
        await other.sessions.update(item, () => says('theirs'))
        vi.advanceTimersByTime(4_000)
      })
      await expect(pieces.platform.sessions.update(item, () => says('mine'))).rejects.toMatchObject({
        code: 'unavailable',
        status: 503,
      })
    } finally {
      vi.useRealTimers()
      pieces.clients.dynamo.middlewareStack.remove(middleware)
    }
    expect(theirs).toBe(4)
    expect(await told()).toEqual({ theirs: 4 })
    // The next one is not held up by it.
    await pieces.platform.sessions.update(item, () => says('mine'))
    expect(await told()).toEqual({ theirs: 4, mine: 1 })
  })
})
