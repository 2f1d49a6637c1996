import { GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { limits } from '../../../lib/limits.ts'
import { createAdmission } from '../../../lib/store/admission.ts'
import { itemKey } from '../../../lib/store/keys.ts'
import { dynamoBackends, openTable } from '../../support/dynamo.ts'
import { at, epochMs } from '../../support/sessions.ts'

const lease = limits.slotLeaseMs

describe.each(dynamoBackends)('admission on $name', (backend) => {
  let now = epochMs
  let open: Awaited<ReturnType<typeof openTable>>
  let admission: ReturnType<typeof createAdmission>
  let teams = 0
  const freshTeam = () => {
    now = epochMs
    return `team-${teams++}`
  }

  beforeAll(async () => {
    open = await openTable(backend)
    admission = createAdmission(open.dynamo, open.table, () => now)
  }, 60_000)
  afterAll(() => open.close())

  const holders = async (team: string) =>
    (await admission.slots(team)).map(({ session_id }) => session_id).toSorted()
  const writes = async (team: string): Promise<unknown> => {
    const answer = await open.dynamo.send(
      new GetCommand({ TableName: open.table, Key: itemKey.admission(team), ConsistentRead: true }),
    )
    return answer.Item?.revision
  }

  describe('slots', () => {
    it('are never more than there are when thirty sessions race for five', async () => {
      const team = freshTeam()
      const ids = Array.from({ length: 30 }, () => newId('ses'))
      const got = await Promise.all(ids.map((id) => admission.acquire(team, id, 5)))
      const winners = ids.filter((_, index) => got[index])
      expect(winners).toHaveLength(5)
      expect(await holders(team)).toEqual(winners.toSorted())
      for (const id of winners) expect(await admission.acquire(team, id, 5)).toBe(true)
      expect(await holders(team)).toEqual(winners.toSorted())
    }, 60_000)

    it('are all given back when thirty sessions that took one give it back at once', async () => {
      const team = freshTeam()
      const ids = Array.from({ length: 30 }, () => newId('ses'))
      expect(await Promise.all(ids.map((id) => admission.take(team, id)))).toEqual(ids.map(() => true))
      expect(await holders(team)).toEqual(ids.toSorted())
      await Promise.all(ids.map((id) => admission.release(team, id)))
      expect(await holders(team)).toEqual([])
    }, 60_000)

    it('are holders and not calls: repeats and strangers change nothing, and they are never fewer than none', async () => {
      const team = freshTeam()
      await admission.release(team, 'ses_never')
      await admission.acquire(team, 'ses_a', 1)
      await Promise.all([1, 2, 3].map(() => admission.release(team, 'ses_a')))
      expect(await holders(team)).toEqual([])
      expect(await admission.acquire(team, 'ses_b', 1)).toBe(true)
      await admission.release(team, 'ses_a')
      expect(await admission.acquire(team, 'ses_c', 1)).toBe(false)
    })

    it('say until when they are held', async () => {
      const team = freshTeam()
      await admission.acquire(team, 'ses_a', 1)
      expect(await admission.slots(team)).toEqual([{ session_id: 'ses_a', expires_at: at(lease) }])
    })

    it('go to another once their lease has lapsed and not before, which removes the lapsed one', async () => {
      const team = freshTeam()
      await admission.acquire(team, 'ses_a', 1)
      now += lease - 1
      expect(await admission.acquire(team, 'ses_b', 1)).toBe(false)
      now += 1
      expect(await admission.acquire(team, 'ses_b', 1)).toBe(true)
      expect(await holders(team)).toEqual(['ses_b'])
      expect(await admission.acquire(team, 'ses_a', 1)).toBe(false)
    })

    it('can be taken above the limit, and then nobody gets in before enough are given back', async () => {
      const team = freshTeam()
      await admission.acquire(team, 'ses_a', 1)
      expect(await admission.take(team, 'ses_b')).toBe(true)
      expect(await admission.take(team, 'ses_b')).toBe(false)
      await admission.release(team, 'ses_a')
      expect(await admission.acquire(team, 'ses_c', 1)).toBe(false)
      await admission.release(team, 'ses_b')
      expect(await admission.acquire(team, 'ses_c', 1)).toBe(true)
    })

    it('are taken again, above the limit, by a session whose lease lapsed while it worked', async () => {
      const team = freshTeam()
      await admission.acquire(team, 'ses_a', 1)
      now += lease
      await admission.acquire(team, 'ses_b', 1)
      expect(await admission.take(team, 'ses_a')).toBe(true)
      expect(await holders(team)).toEqual(['ses_a', 'ses_b'])
    })

    it('are renewed by a write for each half of a lease and not for each heartbeat', async () => {
      const team = freshTeam()
      await admission.acquire(team, 'ses_a', 1)
      expect(await writes(team)).toBe(1)
      for (const end = now + 2 * lease; now <= end; now += 5 * limits.heartbeatMs) {
        expect(await admission.take(team, 'ses_a')).toBe(false)
        expect(await admission.acquire(team, 'ses_b', 1)).toBe(false)
      }
      // With beats 25 s apart the first in the second half of a lease comes 325 s after the last renewal.
      expect(await writes(team)).toBe(1 + Math.floor((2 * lease) / 325_000))
    })

    it('are those of a small model after any calls at any times', async () => {
      const id = fc.constantFrom('ses_a', 'ses_b', 'ses_c', 'ses_d')
      const call = fc.oneof(
        fc.record({ kind: fc.constant('acquire' as const), id, limit: fc.integer({ min: 0, max: 3 }) }),
        fc.record({ kind: fc.constant('take' as const), id }),
        fc.record({ kind: fc.constant('release' as const), id }),
        fc.record({
          kind: fc.constant('pass' as const),
          ms: fc.constantFrom(1, lease / 4, lease / 2, lease - 1, lease),
        }),
      )
      await fc.assert(
        fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 25 }), async (calls) => {
          const team = freshTeam()
          const until = new Map<string, number>()
          const remaining = (holder: string) => (until.get(holder) ?? 0) - now
          const held = () => [...until.keys()].filter((holder) => remaining(holder) > 0).toSorted()
          const keep = (holder: string) => {
            if (remaining(holder) < lease / 2) until.set(holder, now + lease)
          }
          for (const call of calls) {
            if (call.kind === 'pass') now += call.ms
            if (call.kind === 'acquire') {
              const expected = held().includes(call.id) || held().length < call.limit
              expect(await admission.acquire(team, call.id, call.limit)).toBe(expected)
              if (expected) keep(call.id)
            }
            if (call.kind === 'take') {
              expect(await admission.take(team, call.id)).toBe(!held().includes(call.id))
              keep(call.id)
            }
            if (call.kind === 'release') {
              await admission.release(team, call.id)
              until.delete(call.id)
            }
            const recorded = (await admission.slots(team)).filter((slot) => Date.parse(slot.expires_at) > now)
            expect(Object.fromEntries(recorded.map((slot) => [slot.session_id, slot.expires_at]))).toEqual(
              Object.fromEntries(
                held().map((holder) => [holder, new Date(until.get(holder) ?? 0).toISOString()]),
              ),
            )
          }
        }),
        { numRuns: 200 },
      )
    }, 120_000)
  })

  describe('the queue', () => {
    const join = (team: string, ms: number, session_id: string) =>
      admission.wait(team, { since: at(ms), session_id })
    const leave = (team: string, ms: number, session_id: string) =>
      admission.leave(team, { since: at(ms), session_id })

    it('is in the order of the first asking, then of the ids, and a repeat keeps its place', async () => {
      const team = freshTeam()
      for (const ms of [3, 1, 2]) await join(team, ms, `ses_${ms}`)
      await join(team, 2, 'ses_0')
      await join(team, 1, 'ses_1')
      const order: string[] = []
      for (let next = await admission.first(team); next; next = await admission.first(team)) {
        order.push(next.session_id)
        await admission.leave(team, next)
      }
      expect(order).toEqual(['ses_1', 'ses_0', 'ses_2', 'ses_3'])
    })

    it('tells each its place and how many wait, and moves up those behind one that leaves', async () => {
      const team = freshTeam()
      await join(`${team}-other`, 0, 'ses_other')
      for (const ms of [1, 2, 3]) await join(team, ms, `ses_${ms}`)
      const places = async () =>
        Promise.all([1, 2, 3].map((ms) => admission.place(team, at(ms), `ses_${ms}`)))
      expect(await places()).toEqual([1, 2, 3].map((place) => ({ place, waiting: 3 })))
      await leave(team, 2, 'ses_2')
      await leave(team, 2, 'ses_2')
      expect(await places()).toEqual([{ place: 1, waiting: 2 }, null, { place: 2, waiting: 2 }])
      expect(await admission.place(team, at(1), 'ses_3')).toBeNull()
    })

    it('is counted over all pages of an answer', async () => {
      const team = freshTeam()
      // A page of an answer ends at 1 MB.
      for (let ms = 0; ms < 8; ms++) {
        const Item = { ...itemKey.waiting(team, at(ms), `ses_${ms}`), session_id: `ses_${ms}`, since: at(ms) }
        await open.dynamo.send(
          new PutCommand({ TableName: open.table, Item: { ...Item, padding: 'x'.repeat(350_000) } }),
        )
      }
      expect(await admission.place(team, at(6), 'ses_6')).toEqual({ place: 7, waiting: 8 })
    })

    it('tells no number above the thousand that it counts', async () => {
      const team = freshTeam()
      for (let from = 0; from < 1001; from += 50) {
        const ids = Array.from({ length: Math.min(50, 1001 - from) }, (_, index) => from + index)
        await Promise.all(ids.map((ms) => join(team, ms, `ses_${ms}`)))
      }
      expect(await admission.place(team, at(0), 'ses_0')).toEqual({ place: 1, waiting: null })
      expect(await admission.place(team, at(999), 'ses_999')).toEqual({ place: 1000, waiting: null })
      expect(await admission.place(team, at(1000), 'ses_1000')).toEqual({ place: null, waiting: null })
      await leave(team, 500, 'ses_500')
      expect(await admission.place(team, at(1000), 'ses_1000')).toEqual({ place: 1000, waiting: 1000 })
    }, 60_000)
  })
})
