import { PutObjectCommand } from '@aws-sdk/client-s3'
import { newId, newSecret } from '../../lib/ids.ts'
import { chain, toLine } from '../../lib/journal/entry.ts'
import type { EventFact } from '../../lib/journal/event-facts.ts'
import { entriesSchema } from '../../lib/session/agent-protocol.ts'
import { leaseSchema } from '../../lib/session/protocol.ts'
import { system } from '../support/sessions.ts'
import { compare, row } from './measure.ts'
import { startService, team } from './service.ts'

const batch = 100
const rounds = 40

/** Lines of an engine's output, as a worker sends them. */
const outputs = (round: number): EventFact[] =>
  Array.from({ length: batch }, (_, n) => ({
    type: 'engine_output',
    data: {
      iteration: 1,
      omitted_bytes: 0,
      text: `round ${round}, line ${n}: ${'what it is at, '.repeat(20)}`,
    },
  }))

/** Batches of a worker under its lease, over HTTP, against the same bytes put into the same bucket. */
export const append = async (): Promise<void> => {
  const service = await startService()
  try {
    const { platform, clients, settings } = service.pieces
    const worker_id = newId('wrk')
    const time = new Date().toISOString()
    const session = await platform.sessions.commit(service.session, {
      ...{ actor: system, facts: [] },
      runtime: { compute: { id: worker_id, status: 'starting', started_at: time, stopped_at: null } },
    })
    const call = await service.caller({ kind: 'worker', team, session_id: session.id, worker_id })
    const { epoch } = leaseSchema.parse(await call('/worker/v1/lease', { claim: newSecret() }))
    const stamp = { sessionId: session.id, time, actor: { kind: 'worker', id: worker_id } } as const
    const bytes = (round: number): string =>
      chain(session.journal_head, outputs(round), stamp)
        .entries.map((entry) => `${toLine(entry)}\n`)
        .join('')
    const bodies = Array.from({ length: rounds + 1 }, (_, round) => bytes(round))
    // As a worker does: the next batch notes by its receipt that the one before is in the journal.
    let receipt: string | null = null
    const send = async (round: number): Promise<void> => {
      const body = { epoch, batch_id: `round-${round}`, facts: outputs(round), receipt }
      receipt = entriesSchema.parse(await call('/worker/v1/entries', body)).receipt
    }
    const result = await compare(rounds, send, (round) =>
      clients.s3.send(
        new PutObjectCommand({ Bucket: settings.bucket, Key: `bench/${round}`, Body: bodies[round] ?? '' }),
      ),
    )
    console.log(row(`${batch} entries through the API : a bare PutObject`, result, 1.5))
  } finally {
    await service.close()
  }
}
