import { PutObjectCommand } from '@aws-sdk/client-s3'
import { PutCommand } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { chain, emptyHead } from '../../lib/journal/entry.ts'
import type { Fact } from '../../lib/journal/facts.ts'
import { objectKey } from '../../lib/store/keys.ts'
import { sessionPut } from '../../lib/store/sessions.ts'
import { figure, median, time } from './measure.ts'
import { type Service, startService, team } from './service.ts'

const lengths = [10_000, 100_000]
const segment = 200
const writers = 16
const places = 25

const pageSchema = z.object({ data: z.array(z.object({ sequence: z.number() })) })

const facts: Fact[] = Array.from({ length: segment }, (_, n) => ({
  type: 'engine_output',
  data: { iteration: 1, text: `line ${n}\n`.repeat(20), omitted_bytes: 0 },
}))

/** The journal's segments: a page is given out only where each of its lines is the one that was hashed. */
function* segments(sessionId: string, length: number): Generator<{ first: number; body: string }> {
  const stamp = { sessionId, time: new Date().toISOString(), actor: { kind: 'system', id: 'bench' } } as const
  let head = emptyHead
  for (let first = 0; first < length; first += segment) {
    const chained = chain(head, facts, stamp)
    head = chained.head
    yield { first, body: chained.lines.map((line) => `${line}\n`).join('') }
  }
}

/** Lays down a journal of this length for a session whose item knows its end. */
const layDown = async (
  { pieces: { clients, settings }, session }: Service,
  length: number,
): Promise<void> => {
  const rest = segments(session.id, length)
  const write = async (): Promise<void> => {
    for (const { first, body } of rest) {
      const Key = objectKey.segment(team, session.id, first)
      await clients.s3.send(new PutObjectCommand({ Bucket: settings.bucket, Key, Body: body }))
    }
  }
  await Promise.all(Array.from({ length: writers }, write))
  const item = { ...session, journal_head: { ...session.journal_head, sequence: length - 1 } }
  await clients.dynamo.send(new PutCommand(sessionPut(settings.table, item, item.revision)))
}

/** Reads pages from the beginning to the end: the most reads of the bucket that one took, and how long they took. */
const readPages = async (service: Service, length: number): Promise<{ reads: number; ms: number }> => {
  const count = { reads: 0 }
  service.pieces.clients.s3.middlewareStack.add(
    (next) => (args) => {
      count.reads += 1
      return next(args)
    },
    { step: 'finalizeRequest', name: 'count', override: true },
  )
  const call = await service.caller({ kind: 'person', team, principal: 'ada', role: 'viewer' })
  const page = async (after: number): Promise<void> => {
    const { data } = pageSchema.parse(
      await call(`/v1/sessions/${service.session.id}/events?after=${after}&limit=100`),
    )
    if (data[0]?.sequence !== after + 1 || data.length !== 100) throw new Error(`no page after ${after}`)
  }
  const reads: number[] = []
  const times: number[] = []
  for (let place = 0; place < places; place++) {
    count.reads = 0
    times.push(await time(() => page(Math.floor(((length - 101) * place) / (places - 1)))))
    reads.push(count.reads)
  }
  return { reads: Math.max(...reads), ms: median(times.slice(1)) }
}

/**
 * What a page costs of the bucket and in time, anywhere in a journal. The longer of the two has the reads of any longer
 * one: they are a listing from a key on, and the segments that the page is in.
 */
export const pages = async (): Promise<void> => {
  for (const length of lengths) {
    const service = await startService()
    try {
      await layDown(service, length)
      const { reads, ms } = await readPages(service, length)
      const aim = { text: '≤ 3', isMet: reads <= 3 }
      console.log(figure(`S3 reads of a page anywhere in ${length} entries, at most`, `${reads}`, aim))
      console.log(figure('such a page through the API', `${ms.toFixed(1)} ms`))
    } finally {
      await service.close()
    }
  }
}
