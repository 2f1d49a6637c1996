import { QueryCommand, ScanCommand } from '@aws-sdk/lib-dynamodb'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId, newSecret } from '../../../lib/ids.ts'
import { limits } from '../../../lib/limits.ts'
import { revise } from '../../../lib/session/contract-decisions.ts'
import { cancel } from '../../../lib/session/controls.ts'
import { openGate } from '../../../lib/session/gates.ts'
import { settle } from '../../../lib/session/handlers.ts'
import type { Change } from '../../../lib/session/item.ts'
import { createIdempotency } from '../../../lib/store/idempotency.ts'
import { allDueShards, indexes } from '../../../lib/store/keys.ts'
import { createSessions } from '../../../lib/store/sessions.ts'
import { createTokens } from '../../../lib/store/tokens.ts'
import { dynamoBackends, openTable } from '../../support/dynamo.ts'
import { aContract, ada, creationChange, epochMs, system } from '../../support/sessions.ts'

describe.each(dynamoBackends)('the stores on $name', (backend) => {
  let now = epochMs
  const clock = () => now
  let open: Awaited<ReturnType<typeof openTable>>
  let sessions: ReturnType<typeof createSessions>
  let teams = 0
  const freshTeam = () => `team-${teams++}`

  beforeAll(async () => {
    open = await openTable(backend)
    sessions = createSessions(open.dynamo, open.table, clock, open.journals)
  }, 60_000)
  afterAll(() => open.close())

  const create = async (team: string, more: Parameters<typeof creationChange>[2] = {}) => {
    const id = newId('ses')
    return (await sessions.create({ team, id }, creationChange(id, team, more))).item
  }
  const facts = (...given: Change['facts']): Change => ({ actor: system, facts: given })
  const keysOf = async (index: string, partition: string, value: string) => {
    const answer = await open.dynamo.send(
      new QueryCommand({
        ...{ TableName: open.table, IndexName: index, KeyConditionExpression: '#p = :p' },
        ...{ ExpressionAttributeNames: { '#p': partition }, ExpressionAttributeValues: { ':p': value } },
      }),
    )
    return (answer.Items ?? []).map(({ sk }) => sk)
  }
  const liveKeys = async () =>
    (await Promise.all(allDueShards.map((shard) => keysOf('due', indexes.due.partition, shard)))).flat()

  describe('sessions', () => {
    it('creates a session once; a repeat finds the first', async () => {
      const id = newId('ses')
      const key = { team: freshTeam(), id }
      const first = await sessions.create(key, creationChange(id, key.team))
      const second = await sessions.create(key, creationChange(id, key.team, { intent: 'Other' }))
      expect([first.created, second.created]).toEqual([true, false])
      expect(second.item).toEqual(first.item)
    })

    it('gives back what was written, member for member', async () => {
      const team = freshTeam()
      const labels = { 'a.b': '', 'ключ 🙂': 'zażółć', constructor: 'x' }
      const item = await create(team, {
        labels,
        intent: '\t"quoted" \\ \u2028 \u{10ffff}',
        engine_command: ['', 'x'],
      })
      expect(await sessions.get({ team, id: item.id })).toEqual(item)
    })

    it('finds no session of another team, and none where none is', async () => {
      const item = await create(freshTeam())
      expect(await sessions.get({ team: freshTeam(), id: item.id })).toBeNull()
      await expect(sessions.require({ team: item.team, id: newId('ses') })).rejects.toMatchObject({
        code: 'not_found',
      })
    })

    it('lets one of two writes from the same revision win, and tells the other of the conflict', async () => {
      const item = await create(freshTeam())
      const first = await sessions.commit(item, facts({ type: 'error', data: { message: 'one' } }))
      await expect(
        sessions.commit(item, facts({ type: 'error', data: { message: 'two' } })),
      ).rejects.toMatchObject({ code: 'conflict' })
      expect(await sessions.get(item)).toEqual(first)
    })

    it('recognises its own write when only the answer was lost', async () => {
      const item = await create(freshTeam())
      let lost = false
      open.dynamo.middlewareStack.add(
        (next) => async (args) => {
          const answer = await next(args)
          if (lost) return answer
          lost = true
          throw Object.assign(new Error('the line broke'), { name: 'TimeoutError' })
        },
        { step: 'finalizeRequest', name: 'twice', priority: 'low' },
      )
      try {
        const after = await sessions.commit(item, facts({ type: 'error', data: { message: 'once' } }))
        expect(after.revision).toBe(item.revision + 1)
        expect(await sessions.get(item)).toEqual(after)
      } finally {
        open.dynamo.middlewareStack.remove('twice')
      }
    })

    it('makes every one of fifty changes at once, each exactly once', async () => {
      const item = await create(freshTeam())
      const names = Array.from({ length: 50 }, (_, index) => `change ${index}`)
      await Promise.all(
        names.map((message) => sessions.update(item, () => facts({ type: 'error', data: { message } }))),
      )
      const after = await sessions.require(item)
      expect(after.revision).toBe(item.revision + 50)
      for (const name of names) {
        expect(
          after.outbox.filter(({ line }) => line.includes(`"${name}"`)),
          name,
        ).toHaveLength(1)
      }
    }, 60_000)

    it('decides anew after a lost race: of ten cancels at once one cancels', async () => {
      const item = await create(freshTeam())
      const changes: unknown[] = []
      await Promise.all(
        Array.from({ length: 10 }, () =>
          sessions.update(item, (current) => {
            const change = cancel(current, null, ada)
            if (!change) changes.push('nothing to do')
            return change
          }),
        ),
      )
      expect(changes).toHaveLength(9)
      expect((await sessions.require(item)).version).toBe(item.version + 1)
    })

    it('ends an update by what its decision throws, with nothing changed', async () => {
      const item = await create(freshTeam())
      const refusal = new RangeError('no')
      const update = sessions.update(item, () => {
        throw refusal
      })
      await expect(update).rejects.toBe(refusal)
      expect(await sessions.get(item)).toEqual(item)
    })

    it('sees that a contract is the same after a store has ordered its members anew', async () => {
      const item = await create(freshTeam())
      const contract = aContract()
      const gated = await sessions.update(item, () => ({
        actor: system,
        facts: [
          { type: 'step_completed', data: { step: 'Baseline', trigger: 't', next: 'Confirm' } },
          { type: 'state_changed', data: { from: 'created', to: 'contract_proposed', trigger: 't' } },
          openGate('contract', now),
        ],
      }))
      expect(revise(gated, { ...contract, description: 'Said otherwise' }, ada)).toBeNull()
      const reversed = Object.fromEntries(Object.entries(contract).reverse())
      expect(revise(await sessions.require(gated), { ...contract, ...reversed }, ada)).toBeNull()
    })

    it('pages newest first with no gap and no repeat, whatever the size of the pages', async () => {
      const team = freshTeam()
      const ids: string[] = []
      for (let count = 0; count < 23; count++) ids.push((await create(team)).id)
      const newestFirst = ids.toSorted().reverse()
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 30 }), fc.nat({ max: 22 }), async (limit, skip) => {
          const seen: string[] = []
          let before: string | null = skip === 0 ? null : (newestFirst[skip - 1] ?? null)
          for (;;) {
            const { items, next } = await sessions.page(team, { limit, before, filter: {} })
            expect(items.length).toBeLessThanOrEqual(limit)
            seen.push(...items.map(({ id }) => id))
            before = next
            if (next === null) break
          }
          expect(seen).toEqual(newestFirst.slice(skip))
        }),
        { numRuns: 25 },
      )
    }, 60_000)

    it('pages on from a cursor whose session is not there', async () => {
      const team = freshTeam()
      const ids = [await create(team), await create(team), await create(team)].map(({ id }) => id)
      const { items } = await sessions.page(team, { limit: 3, before: newId('ses'), filter: {} })
      expect(items.map(({ id }) => id)).toEqual(ids.reverse())
      const page = await sessions.page(team, { limit: 2, before: newId('ses'), filter: {} })
      expect(page).toMatchObject({ next: page.items[1]?.id })
    })

    it('lists a session under what needs a person only while it does', async () => {
      const team = freshTeam()
      const item = await create(team)
      const listed = async () =>
        (await sessions.page(team, { limit: 10, before: null, filter: { needsYou: true } })).items.map(
          ({ id }) => id,
        )
      expect(await listed()).toEqual([])
      const gate = openGate('contract', now)
      const opened = await sessions.commit(item, facts(gate))
      expect(await listed()).toEqual([item.id])
      if (gate.type !== 'gate_opened') throw new Error('a gate')
      const answer = {
        gate_id: gate.data.id,
        action: 'confirm',
        by: 'ada',
        comment: null,
        automatic: false,
      } as const
      await sessions.commit(opened, facts({ type: 'gate_resolved', data: answer }))
      expect(await listed()).toEqual([])
      expect(await keysOf('needs_you', indexes.needsYou.partition, team)).toEqual([])
    })

    it('keeps a session among the due ones until nothing about it can be left half-done, and then once more when it is old', async () => {
      const item = await create(freshTeam())
      const key = `SESSION#${item.id}`
      expect(await liveKeys()).toContain(key)
      const due = async () => (await sessions.due(now, 1000)).map(({ id }) => id)
      expect(await due()).not.toContain(item.id)
      now += 31_000
      expect(await due()).toContain(item.id)
      const ended = await sessions.update(item, (current) => cancel(current, null, ada))
      const settled = await sessions.update(ended, settle)
      expect(await liveKeys()).toContain(key)
      const done = await sessions.commit(settled, {
        ...{ actor: system, facts: [], drained: settled.journal_head.sequence },
        runtime: { answers: [], start_pending: false },
      })
      now += 3_600_000
      // Its journal is to be sealed, and the segments that the seal covers are to be removed.
      expect(await due()).toContain(item.id)
      const sealed = {
        ...{ sha256: '0'.repeat(64), bytes: 1, through: 1, frame_entries: 1, cleared: false },
        sealed_at: new Date(now).toISOString(),
      }
      const unclear = await sessions.commit(done, { actor: system, facts: [], runtime: { sealed } })
      expect(await due()).not.toContain(item.id)
      now += 3 * 3_600_000
      expect(await due()).toContain(item.id)
      await sessions.commit(unclear, {
        ...{ actor: system, facts: [] },
        runtime: { sealed: { ...sealed, cleared: true } },
      })
      expect(await due()).not.toContain(item.id)
      // What is left to do about it is to let it go one day.
      const kept = limits.retention.days * 24 * 3_600_000
      expect((await sessions.due(now + kept, 1000)).map(({ id }) => id)).toContain(item.id)
    })
  })

  describe('tokens', () => {
    const person = { kind: 'person', team: 'team', principal: 'ada', role: 'viewer' } as const

    it('knows a token until it expires, and no other', async () => {
      const tokens = createTokens(open.dynamo, open.table, clock)
      const secret = newSecret()
      await tokens.add(secret, person, now + 10_000)
      expect(await tokens.find(secret)).toEqual(person)
      expect(await tokens.find(newSecret())).toBeNull()
      expect(await tokens.find(`${secret}x`)).toBeNull()
      now += 10_001
      expect(await tokens.find(secret)).toBeNull()
    })

    it('does not let a repeat change whom a token stands for', async () => {
      const tokens = createTokens(open.dynamo, open.table, clock)
      const secret = newSecret()
      await tokens.add(secret, person, null)
      await tokens.add(secret, { ...person, role: 'admin' }, null)
      expect(await tokens.find(secret)).toEqual(person)
    })

    it('keeps no secret anywhere in the table', async () => {
      const secret = newSecret()
      await createTokens(open.dynamo, open.table, clock).add(secret, person, null)
      const all = await open.dynamo.send(new ScanCommand({ TableName: open.table }))
      expect(JSON.stringify(all.Items)).not.toContain(secret)
      expect(JSON.stringify(all.Items)).not.toContain(secret.slice(3))
    })
  })

  describe('idempotency keys', () => {
    const answer = { status: 201, headers: { etag: '"1"' }, body: '{"a":1}' }
    const store = () => createIdempotency(open.dynamo, open.table, clock)

    it('gives a repeat the first answer and the first subject', async () => {
      const team = freshTeam()
      expect(await store().claim(team, 'key', 'print', 'ses_1')).toMatchObject({
        subjectId: 'ses_1',
        answer: null,
      })
      await store().store(team, 'key', 'print', 'ses_1', answer)
      expect(await store().claim(team, 'key', 'print', 'ses_2')).toMatchObject({ subjectId: 'ses_1', answer })
      expect(await store().claim(freshTeam(), 'key', 'print', 'ses_2')).toMatchObject({ answer: null })
    })

    it('refuses a key with another request, and while the first call runs', async () => {
      const team = freshTeam()
      await store().claim(team, 'key', 'print', 'ses_1')
      await expect(store().claim(team, 'key', 'other', 'ses_2')).rejects.toMatchObject({
        code: 'idempotency_mismatch',
      })
      await expect(store().claim(team, 'key', 'print', 'ses_2')).rejects.toMatchObject({
        code: 'idempotency_in_progress',
      })
    })

    it('leaves the key of a call that died to one of its repeats, for the same subject', async () => {
      const team = freshTeam()
      await store().claim(team, 'key', 'print', 'ses_1')
      now += limits.idempotencyLeaseMs
      const repeats = await Promise.allSettled(
        [1, 2, 3].map((n) => store().claim(team, 'key', 'print', `ses_${n + 1}`)),
      )
      const won = repeats.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
      expect(won).toHaveLength(1)
      expect(won[0]).toMatchObject({ subjectId: 'ses_1', answer: null })
    })

    it('keeps the key of a call that runs on and renews it, and not of one that has lost it', async () => {
      const team = freshTeam()
      let held = await store().claim(team, 'key', 'print', 'ses_1')
      for (let round = 0; round < 3; round++) {
        now += limits.idempotencyLeaseMs - 1
        const renewed = await store().renew(team, 'key', held)
        if (!renewed) throw new Error('the claim was lost')
        held = renewed
        await expect(store().claim(team, 'key', 'print', 'ses_2')).rejects.toMatchObject({
          code: 'idempotency_in_progress',
        })
      }
      now += limits.idempotencyLeaseMs
      expect(await store().claim(team, 'key', 'print', 'ses_2')).toMatchObject({ subjectId: 'ses_1' })
      expect(await store().renew(team, 'key', held)).toBeNull()
    })

    it('gives the key back after a refusal, but not one that others have taken over', async () => {
      const team = freshTeam()
      const first = await store().claim(team, 'key', 'print', 'ses_1')
      now += limits.idempotencyLeaseMs
      const second = await store().claim(team, 'key', 'print', 'ses_2')
      await store().release(team, 'key', first)
      await expect(store().claim(team, 'key', 'print', 'ses_3')).rejects.toMatchObject({
        code: 'idempotency_in_progress',
      })
      await store().release(team, 'key', second)
      expect(await store().claim(team, 'key', 'other', 'ses_3')).toMatchObject({ subjectId: 'ses_3' })
    })

    it('leaves the key to the same call at once after a fault of ours', async () => {
      const team = freshTeam()
      const claim = await store().claim(team, 'key', 'print', 'ses_1')
      await store().reopen(team, 'key', 'print', claim)
      await expect(store().claim(team, 'key', 'other', 'ses_2')).rejects.toMatchObject({
        code: 'idempotency_mismatch',
      })
      expect(await store().claim(team, 'key', 'print', 'ses_2')).toMatchObject({
        subjectId: 'ses_1',
        answer: null,
      })
    })

    it('forgets a key after its time, whether or not the table has removed it yet', async () => {
      const team = freshTeam()
      await store().claim(team, 'key', 'print', 'ses_1')
      await store().store(team, 'key', 'print', 'ses_1', answer)
      now += limits.idempotencyTtlMs + 1000
      expect(await store().claim(team, 'key', 'other', 'ses_2')).toMatchObject({
        subjectId: 'ses_2',
        answer: null,
      })
    })

    it('survives a key that is given back while another claims it', async () => {
      const team = freshTeam()
      const calls = Array.from({ length: 20 }, async (_, n) => {
        const claim = await store().claim(team, 'key', 'print', `ses_${n}`)
        await store().release(team, 'key', claim)
      })
      for (const { status, reason } of (await Promise.allSettled(calls)).map((one) => ({
        reason: null,
        ...one,
      }))) {
        if (status === 'rejected') expect(reason).toMatchObject({ code: 'idempotency_in_progress' })
      }
    })
  })
})
