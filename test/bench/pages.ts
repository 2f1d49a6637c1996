import { PutObjectCommand } from '@aws-sdk/client-s3'
import { PutCommand } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { objectKey } from '../../lib/store/keys.ts'
import { sessionPut } from '../../lib/store/sessions.ts'
import { history } from './history.ts'
import { figure, median, time } from './measure.ts'
import { type Service, startService, team } from './service.ts'

const lengths = [10_000, 100_000]
const segment = 200
const writers = 16
const places = 25

const pageSchema = z.object({ data: z.array(z.object({ sequence: z.number() })) })

/** The journal's segments. A page proves nothing, so they all say the same but for their sequences. */
function* segments(length: number): Generator<{ first: number; body: string }> {
  const lines = Array.from(history('realistic', segment), (line) => line.split(/(?<="sequence":)\d+/))
  for (let first = 0; first < length; first += segment)
    yield { first, body: lines.map(([head, tail], n) => `${head}${first + n}${tail}\n`).join('') }
}

/** Lays down a journal of this length for a session whose item knows its end. */
const layDown = async (
  { pieces: { clients, settings }, session }: Service,
  length: number,
): Promise<void> => {
  const rest = segments(length)
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
