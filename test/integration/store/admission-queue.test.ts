import { PutCommand } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import type { Change, SessionItem } from '../../../lib/session/item.ts'
import { isTerminal, type Step } from '../../../lib/session/states.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { askForSlot, giveBackSlot, promote, renewSlot } from '../../../lib/store/queue.ts'
import { sessionPut } from '../../../lib/store/sessions.ts'
import { temporaryFolder } from '../../repositories.ts'
import { Crash, crashAt, type Pieces, startPieces } from '../../support/pieces.ts'
import { at, epochMs, newSession, sessionAt, system } from '../../support/sessions.ts'

let pieces: Pieces
let platform: Platform
let now = epochMs
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder(), { concurrency: 2, clock: () => now })
  platform = pieces.platform
}, 60_000)
afterAll(() => pieces.close())

let teams = 0
const freshTeam = () => `team-${teams++}`
type Id = { team: string; id: string }

/** Puts a session into the store, with its execution started and what it says in the journal. */
const put = async (team: string, session: SessionItem): Promise<Id> => {
  const item = { ...session, team, outbox: [], runtime: { ...session.runtime, start_pending: false } }
  await pieces.clients.dynamo.send(new PutCommand(sessionPut(pieces.settings.table, item, 0)))
  return { team, id: item.id }
}
const create = (team: string) => put(team, newSession())
const createAll = (team: string, count: number) =>
  Promise.all(Array.from({ length: count }, () => create(team)))
const ask = ({ team, id }: Id, ms: number) => askForSlot(platform, team, id, at(ms))
const askInOrder = async (ids: Id[]) => {
  for (const [ms, id] of ids.entries()) await ask(id, ms)
}
const giveBack = ({ team, id }: Id) => giveBackSlot(platform, team, id)
const ended = ({ document }: SessionItem): Change | null =>
  isTerminal(document.state)
    ? null
    : {
        actor: system,
        facts: [
          { type: 'step_completed', data: { step: document.step, trigger: 'cancelled', next: 'Settle' } },
          { type: 'state_changed', data: { from: document.state, to: 'abandoned', trigger: 'cancelled' } },
        ],
      }
const stop = (id: Id) => platform.sessions.update(id, ended)
const settle = (id: Id) =>
  platform.sessions.update(id, ({ runtime }) =>
    runtime.settled ? null : { actor: system, facts: [], runtime: { settled: true } },
  )
/** What Settle does for a session that asked for a slot at a time. */
const settleAt = async (id: Id, ms: number) => {
  await giveBackSlot(platform, id.team, id.id, at(ms))
  await settle(id)
}
const stepOf = async (id: Id): Promise<Step> => (await platform.sessions.require(id)).document.step
const steps = (ids: Id[]) => Promise.all(ids.map(stepOf))
const admitted = async (ids: Id[]) => (await steps(ids)).filter((step) => step === 'Preflight').length
const firstAdmitted = (all: number, count: number): Step[] =>
  Array.from({ length: all }, (_, index) => (index < count ? 'Preflight' : 'Admit'))
const holders = async (team: string) =>
  (await platform.admission.slots(team)).map(({ session_id }) => session_id).toSorted()
const names = (ids: (Id | undefined)[]) => ids.flatMap((id) => (id ? [id.id] : [])).toSorted()
const placeOf = ({ team, id }: Id, ms: number) => platform.admission.place(team, at(ms), id)

describe('sessions that ask for a slot', () => {
  it('get in while there are slots, then in order as slots are given back, once for each', async () => {
    const team = freshTeam()
    const ids = await createAll(team, 4)
    await askInOrder(ids)
    expect(await steps(ids)).toEqual(firstAdmitted(4, 2))
    const [, second] = ids
    if (!second) throw new Error('no second')
    await giveBack(second)
    expect(await steps(ids)).toEqual(firstAdmitted(4, 3))
    await Promise.all([1, 2, 3].map(() => giveBack(second)))
    expect(await steps(ids)).toEqual(firstAdmitted(4, 3))
    expect(await holders(team)).toEqual(names([ids[0], ids[2]]))
  })

  it('are never more than there are slots when thirty ask at once', async () => {
    const team = freshTeam()
    const ids = await createAll(team, 30)
    await Promise.all(ids.map(ask))
    expect(await admitted(ids)).toBe(2)
    expect(await holders(team)).toHaveLength(2)
    expect(await Promise.all(ids.map((id, ms) => placeOf(id, ms)))).toEqual(
      expect.arrayContaining(Array.from({ length: 28 }, (_, n) => ({ place: n + 1, waiting: 28 }))),
    )
  }, 60_000)

  it('get in by their order however many promote at once', async () => {
    const team = freshTeam()
    const ids = await createAll(team, 9)
    await askInOrder(ids)
    expect(await steps(ids)).toEqual(firstAdmitted(9, 2))
    for (let count = 2; count < 9; count++) {
      const holder = ids[count - 2]
      if (!holder) throw new Error('nobody holds a slot')
      await Promise.all([giveBack(holder), ...[1, 2, 3, 4, 5].map(() => promote(platform, team))])
      expect(await steps(ids)).toEqual(firstAdmitted(9, count + 1))
      expect(await holders(team)).toEqual(names([ids[count - 1], ids[count]]))
    }
    expect(await platform.admission.first(team)).toBeNull()
  }, 60_000)

  it('do not pass those who came before when a slot is free and nobody has promoted yet', async () => {
    const team = freshTeam()
    const [early, late] = await createAll(team, 2)
    if (!early || !late) throw new Error('no sessions')
    await platform.admission.take(team, 'ses_other')
    await platform.admission.wait(team, { since: at(0), session_id: early.id })
    await ask(late, 1)
    expect(await steps([early, late])).toEqual(['Preflight', 'Admit'])
  })

  it('keep what they have and get no second slot when they ask again after they got in', async () => {
    const team = freshTeam()
    const atGate = await put(team, sessionAt('contract_proposed', 'Confirm'))
    const working = await put(team, sessionAt('running', 'Code'))
    await platform.admission.take(team, working.id)
    await Promise.all([atGate, working].map((id) => ask(id, 0)))
    expect(await holders(team)).toEqual([working.id])
    expect(await platform.admission.first(team)).toBeNull()
    expect(await steps([atGate, working])).toEqual(['Confirm', 'Code'])
  })
})

describe('a session that is cancelled while it waits', () => {
  it('leaves the queue at once, so that those behind it move up', async () => {
    const team = freshTeam()
    const ids = await createAll(team, 5)
    await askInOrder(ids)
    const [, , third, cancelled, last] = ids
    if (!third || !cancelled || !last) throw new Error('no sessions')
    expect(await placeOf(last, 4)).toEqual({ place: 3, waiting: 3 })
    await stop(cancelled)
    await settleAt(cancelled, 3)
    expect(await placeOf(cancelled, 3)).toBeNull()
    expect(await placeOf(third, 2)).toEqual({ place: 1, waiting: 2 })
    expect(await placeOf(last, 4)).toEqual({ place: 2, waiting: 2 })
  })

  it('is not in it when its cancel came before it had joined', async () => {
    const team = freshTeam()
    const ids = await createAll(team, 4)
    const [first, second, early, late] = ids
    if (!first || !second || !early || !late) throw new Error('no sessions')
    await askInOrder([first, second, early])
    await stop(late)
    await settleAt(late, 3)
    await ask(late, 3)
    expect(await placeOf(late, 3)).toBeNull()
    expect(await placeOf(early, 2)).toEqual({ place: 1, waiting: 1 })
  })

  it('is passed over when nobody has taken it out of the queue', async () => {
    const team = freshTeam()
    const ids = await createAll(team, 4)
    await askInOrder(ids)
    const [first, second, cancelled, next] = ids
    if (!first || !second || !cancelled || !next) throw new Error('no sessions')
    await stop(cancelled)
    await promote(platform, team)
    expect(await placeOf(next, 3)).toEqual({ place: 1, waiting: 1 })
    await giveBack(first)
    expect(await stepOf(next)).toBe('Preflight')
    expect(await holders(team)).toEqual(names([second, next]))
    expect(await placeOf(cancelled, 2)).toBeNull()
  })

  it('never keeps a slot or a place, whoever comes first', async () => {
    for (let round = 0; round < 15; round++) {
      const team = freshTeam()
      const [first, second, cancelled, next] = await createAll(team, 4)
      if (!first || !second || !cancelled || !next) throw new Error('no sessions')
      await askInOrder([first, second, cancelled, next])
      const cancelling = async () => {
        await stop(cancelled)
        await settleAt(cancelled, 2)
      }
      await Promise.all([giveBack(first), cancelling(), promote(platform, team)])
      expect(await holders(team)).toEqual(names([second, next]))
      expect(await stepOf(next)).toBe('Preflight')
      expect(await platform.admission.first(team)).toBeNull()
      expect((await platform.sessions.require(cancelled)).document.state).toBe('abandoned')
    }
  }, 60_000)

  it('does not get a slot when it ends between the look at it and the claim', async () => {
    const team = freshTeam()
    const id = await create(team)
    await platform.admission.wait(team, { since: at(0), session_id: id.id })
    const { sessions } = platform
    const racing = {
      ...platform,
      sessions: {
        ...sessions,
        get: async (key: Id) => {
          const before = await sessions.get(key)
          await stop(key)
          await settle(key)
          await platform.admission.release(key.team, key.id)
          return before
        },
      },
    }
    await promote(racing, team)
    expect(await holders(team)).toEqual([])
  })
})

describe('a slot', () => {
  it('is renewed for the session that works, so that no other gets it', async () => {
    const team = freshTeam()
    const id = await put(team, sessionAt('running', 'Code'))
    const began = now
    await platform.admission.take(team, id.id)
    for (; now <= began + 2 * limits.slotLeaseMs; now += limits.slotLeaseMs / 4) {
      await renewSlot(platform, team, id.id)
      expect(await platform.admission.acquire(team, 'ses_other', 1)).toBe(false)
    }
  })

  it('is taken again above the limit by a session that works on after its lease went to another', async () => {
    const team = freshTeam()
    const ids = [
      await put(team, sessionAt('running', 'Code')),
      await put(team, sessionAt('running', 'Validate')),
    ]
    for (const { id } of ids) await platform.admission.take(team, id)
    now += limits.slotLeaseMs
    const others = await createAll(team, 3)
    await askInOrder(others)
    expect(await steps(others)).toEqual(firstAdmitted(3, 2))
    for (const { id } of ids) await renewSlot(platform, team, id)
    expect(await holders(team)).toEqual(names([...ids, ...others.slice(0, 2)]))
    for (const id of ids) await giveBack(id)
    expect(await steps(others)).toEqual(firstAdmitted(3, 2))
  })

  it.each([
    ['contract_proposed', 'Confirm'],
    ['running', 'RateLimit'],
    ['abandoned', 'Settle'],
  ] as const)(
    'is not brought back by a late heartbeat of a session that is %s at %s',
    async (state, step) => {
      const team = freshTeam()
      const { id } = await put(team, sessionAt(state, step))
      await renewSlot(platform, team, id)
      expect(await holders(team)).toEqual([])
    },
  )

  it('that a crash left with a session at a gate or with one that ended goes to who asks for it', async () => {
    const team = freshTeam()
    const atGate = await put(team, sessionAt('needs_approval', 'Review'))
    const over = await put(team, sessionAt('abandoned', 'Settle'))
    await settle(over)
    for (const { id } of [atGate, over]) await platform.admission.take(team, id)
    const ids = await createAll(team, 2)
    await askInOrder(ids)
    expect(await steps(ids)).toEqual(firstAdmitted(2, 2))
    expect(await holders(team)).toEqual(names(ids))
  })

  it('stays with a session that was cancelled until its worker was stopped', async () => {
    const team = freshTeam()
    const ending = await Promise.all([1, 2].map(() => put(team, sessionAt('abandoned', 'Settle'))))
    for (const { id } of ending) await platform.admission.take(team, id)
    const waiting = await create(team)
    await ask(waiting, 0)
    expect(await stepOf(waiting)).toBe('Admit')
    expect(await holders(team)).toEqual(names(ending))
  })

  it.each(['before', 'after'] as const)(
    'is neither lost nor leaked by a crash %s any one call, whether the same call or only a promotion follows',
    async (when) => {
      for (const repeated of [true, false]) {
        for (let n = 1; ; n++) {
          const team = freshTeam()
          const [first, second, third, fourth, ...more] = await createAll(team, 6)
          if (!first || !second || !third || !fourth) throw new Error('no sessions')
          await askInOrder([first, second, third])
          await Promise.all([first, second, third].map(stop))
          const calls = [
            // The machine or the sweep repeats Settle.
            { again: true, call: () => settleAt(second, 1) },
            { again: repeated, call: () => ask(fourth, 3) },
            { again: true, call: () => settleAt(third, 2) },
            { again: repeated, call: () => renewSlot(platform, team, third.id) },
            { again: true, call: () => settleAt(first, 0) },
          ]
          const crash = crashAt(pieces.clients, n, when)
          for (const { again, call } of calls) {
            await call().catch((error: unknown) => {
              if (!(error instanceof Crash)) throw error
              return again ? call() : promote(platform, team)
            })
          }
          const { fired } = crash
          crashAt(pieces.clients, 0, when)
          // Nothing knows of an asking that crashed before it was in the queue but the machine, whose step it fails.
          await askInOrder([fourth, ...more])
          expect(await steps([fourth, ...more]), `call ${n}`).toEqual(firstAdmitted(3, 2))
          expect(await holders(team)).toEqual(names([fourth, more[0]]))
          expect(await placeOf(more[1] ?? fourth, 2)).toEqual({ place: 1, waiting: 1 })
          if (!fired) {
            expect(n).toBeGreaterThan(20)
            break
          }
        }
      }
    },
    120_000,
  )
})
