import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createApp } from '../../../functions/api/app.ts'
import { newId, newSecret } from '../../../lib/ids.ts'
import { limits } from '../../../lib/limits.ts'
import { entriesSchema } from '../../../lib/session/agent-protocol.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { temporaryFolder } from '../../repositories.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { at, creationChange, system } from '../../support/sessions.ts'

let pieces: Pieces
let app: ReturnType<typeof createApp>
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
  app = createApp(pieces.platform, { version: 'test', log: ({ error }) => console.error(error) })
})
afterAll(() => pieces.close())

const team = 'team'
let id: { team: string; id: string }
let secret: string
/** A session whose worker holds the lease, with nothing left in its outbox. */
beforeEach(async () => {
  id = { team, id: newId('ses') }
  secret = newSecret()
  const worker_id = newId('wrk')
  const { item } = await pieces.platform.sessions.create(id, creationChange(id.id, team))
  await pieces.platform.journals.drain(item)
  await pieces.platform.sessions.commit(item, {
    ...{ actor: system, facts: [], drained: item.journal_head.sequence },
    runtime: {
      start_pending: false,
      compute: { id: worker_id, status: 'live', started_at: at(0), stopped_at: null },
      lease: { epoch: 1, worker_id, expires_at: at(30_000), claim: null },
    },
  })
  const { platform } = pieces
  await platform.tokens.add(secret, { kind: 'worker', team, session_id: id.id, worker_id }, null)
})

const call = async (path: string, body: Record<string, unknown>) => {
  const answer = await app.fetch(
    new Request(`http://gatehouse/worker/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ epoch: 1, ...body }),
    }),
  )
  return { status: answer.status, body: await answer.json() }
}
const batchOf = (name: string, message = name) => ({
  batch_id: name,
  facts: [{ type: 'error', data: { message } }],
})
const append = async (name: string, receipt?: string | null) => {
  const answer = await call('entries', { ...batchOf(name), ...(receipt === undefined ? {} : { receipt }) })
  expect(answer.status).toBe(200)
  return entriesSchema.parse(answer.body)
}
const waiting = async () =>
  (await pieces.platform.sessions.require(id)).outbox.map(({ sequence }) => sequence)
/** The messages of the journal in the bucket, which is whole. */
const told = async () => {
  expect((await proveJournal(pieces.platform, id)).ok).toBe(true)
  const entries = await pieces.platform.journals.after(id, -1, 1000)
  return entries.filter(({ type }) => type === 'error').map(({ data }) => data.message)
}

it('a batch is noted by the next call that names its receipt, and each is in the journal when it is answered', async () => {
  const first = await append('one', null)
  expect([await told(), await waiting()]).toEqual([['one'], [first.sequence]])
  const second = await append('two', first.receipt)
  expect([await told(), await waiting()]).toEqual([['one', 'two'], [second.sequence]])
  expect((await call('heartbeat', { receipt: second.receipt })).status).toBe(200)
  expect([await told(), await waiting()]).toEqual([['one', 'two'], []])
})

it('a worker that takes no receipts has each batch noted at once', async () => {
  await append('one')
  expect([await told(), await waiting()]).toEqual([['one'], []])
})

it('nothing leaves the outbox for a receipt that was made up, is an older one, or is none', async () => {
  const first = await append('one', null)
  const second = await append('two', first.receipt)
  for (const receipt of ['made up', first.receipt, null, undefined]) {
    expect((await call('heartbeat', receipt === undefined ? {} : { receipt })).status).toBe(200)
    expect(await waiting()).toEqual([second.sequence])
  }
})

it('a repeated batch is answered with the receipt of the first, and stands once', async () => {
  const first = await append('one', null)
  expect(await append('one', null)).toEqual(first)
  expect(await told()).toEqual(['one'])
})

it('what others decided behind the batch stays until it is in the journal too', async () => {
  const first = await append('one', null)
  const decided = await pieces.platform.sessions.update(id, () => ({
    actor: system,
    facts: [{ type: 'error', data: { message: 'decided' } }],
  }))
  await call('heartbeat', { receipt: first.receipt })
  expect(await waiting()).toEqual([decided.journal_head.sequence])
  await append('two', first.receipt)
  expect(await told()).toEqual(['one', 'decided', 'two'])
})

it('a worker that never names a receipt is refused before its batches fill the item', async () => {
  const message = 'x'.repeat(60_000)
  const answers: number[] = []
  for (let n = 0; n < 5; n++)
    answers.push((await call('entries', { ...batchOf(`b${n}`, message), receipt: null })).status)
  expect(answers).toEqual([200, 200, 200, 503, 503])
  const { outbox } = await pieces.platform.sessions.require(id)
  expect(outbox.map(({ line }) => line).join('').length).toBeLessThan(2 * limits.journalBatch.bytes)
})
