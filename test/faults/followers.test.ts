import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { temporaryFolder } from '../repositories.ts'
import {
  type ApiServer,
  append,
  errors,
  newStored,
  startApiServer,
  team,
  terminalFact,
} from '../support/api-server.ts'
import { eventsOf } from '../support/event-source.ts'
import { type Pieces, startPieces } from '../support/pieces.ts'

const count = { followers: 200, writers: 3, writes: 5 }
const seed = Number(process.env.GATEHOUSE_FAULTS_SEED ?? Date.now() % 1_000_000)

let pieces: Pieces
let api: ApiServer
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
  api = await startApiServer(pieces.platform)
}, 60_000)
afterAll(async () => {
  await api.close()
  await pieces.close()
})

/** How one follower behaves. */
const planArbitrary = fc.record({
  /** It begins when so much of the journal is written, in shares of 1. */
  start: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1, noNaN: true })),
  /** Where it begins, in shares of what is written then; before the first entry, or beyond the last. */
  from: fc.oneof(
    { weight: 5, arbitrary: fc.constant('beginning' as const) },
    { weight: 3, arbitrary: fc.double({ min: 0, max: 1, noNaN: true }) },
    { weight: 2, arbitrary: fc.constant('beyond' as const) },
  ),
  /** After how many events each of its connections breaks; the last one holds. */
  breaks: fc.array(fc.nat({ max: 120 }), { maxLength: 3 }),
  /** How it writes a cursor. */
  names: fc.boolean(),
  /** Milliseconds that it takes for what arrives at once. */
  takes: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 30 })),
})
type Plan = typeof planArbitrary extends fc.Arbitrary<infer Value> ? Value : never

/** Tells those who wait for a part of the journal when it is written. */
const createProgress = () => {
  const waiting: { share: number; resolve: () => void }[] = []
  let share = 0
  return {
    reach: (now: number) => {
      share = now
      for (const one of waiting) if (one.share <= share) one.resolve()
    },
    until: (wanted: number): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (wanted <= share) resolve()
      else waiting.push({ share: wanted, resolve })
      return promise
    },
  }
}

/** What all followers were told of each entry, which has to be the same. */
const told = new Map<number, string>()
type Seen = { from: number; sequences: number[]; connections: number; refused: boolean }

const follow = async (id: string, plan: Plan): Promise<Seen> => {
  const path = `/v1/sessions/${id}/events`
  const write = (sequence: number) => (plan.names ? `${id}:${sequence}` : String(sequence))
  const { journal_head } = await pieces.platform.sessions.require({ team, id })
  const from = typeof plan.from === 'number' ? Math.floor(plan.from * (journal_head.sequence + 1)) : -1
  const seen: Seen = { from: from, sequences: [], connections: 0, refused: false }
  if (plan.from === 'beyond') {
    const answer = await api.stream(`${path}?after=${write(journal_head.sequence + 100_000)}`)
    seen.refused = answer.status === 422
    await answer.text()
  }
  let lastId: string | undefined
  for (;;) {
    // The address stays as it was at first: it is the header that says where an event source stands.
    const answer = await api.stream(`${path}?after=${write(from)}`, lastId)
    if (answer.status === 204) return seen
    expect(answer.status).toBe(200)
    let left = plan.breaks[seen.connections] ?? Number.POSITIVE_INFINITY
    seen.connections += 1
    connection: for await (const events of eventsOf(answer)) {
      for (const event of events) {
        if (left-- <= 0) break connection
        const sequence = Number(event.id)
        expect(event.data).toBe(told.get(sequence) ?? event.data)
        told.set(sequence, event.data)
        seen.sequences.push(sequence)
        lastId = plan.names ? `${id}:${event.id}` : event.id
      }
      if (plan.takes > 0) await sleep(plan.takes)
    }
  }
}

test(`${count.followers} followers see every entry once and in order, however often they break off (seed ${seed})`, async () => {
  console.info(`GATEHOUSE_FAULTS_SEED=${seed}`)
  const id = await newStored(pieces.platform)
  const plans = fc.sample(planArbitrary, { numRuns: count.followers, seed })
  const sizes = fc.sample(fc.integer({ min: 1, max: 60 }), { numRuns: count.writers * count.writes, seed })
  const progress = createProgress()

  const following = plans.map(async (plan) => {
    await progress.until(plan.start)
    return follow(id, plan)
  })
  const rest = [...sizes]
  const write = async () => {
    for (let size = rest.pop(); size !== undefined; size = rest.pop()) {
      await append(pieces.platform, id, errors(size))
      progress.reach(1 - rest.length / sizes.length)
    }
  }
  await Promise.all(Array.from({ length: count.writers }, write))
  const { journal_head } = await append(pieces.platform, id, [terminalFact])
  const all = await Promise.all(following)

  const entries = await pieces.platform.journals.after({ team, id }, -1, 100_000)
  expect(entries.at(-1)?.sequence).toBe(journal_head.sequence)
  expect([...told].toSorted(([a], [b]) => a - b)).toEqual(
    entries.map((entry) => [entry.sequence, JSON.stringify(entry)]),
  )
  for (const [at, { from, sequences }] of all.entries())
    expect(sequences, `follower ${at}: ${JSON.stringify(plans[at])}`).toEqual(
      entries.slice(from + 1).map(({ sequence }) => sequence),
    )
  expect(all.map(({ refused }) => refused)).toEqual(plans.map(({ from }) => from === 'beyond'))
  const connections = all.reduce((sum, seen) => sum + seen.connections, 0)
  console.info(`${entries.length} entries, ${connections} connections of ${all.length} followers`)
  expect(connections).toBeGreaterThan(all.length)
  expect(api.faults).toEqual([])
}, 60_000)
