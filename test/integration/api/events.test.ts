import { setTimeout as sleep } from 'node:timers/promises'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../../lib/journal/entry.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import { transition } from '../../../lib/store/effects.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { requireAllPrefixes } from '../../support/prefixes.ts'
import { system } from '../../support/sessions.ts'
import { startTestStack, type TestStack } from '../../support/stack.ts'
import { paths, requireProblem } from './quiet-stack.ts'

let stack: TestStack
beforeAll(async () => {
  stack = await startTestStack({ concurrency: 1 })
  await stack.platform.admission.acquire('local', 'ses_nobody', 1)
}, 60_000)
afterAll(async () => {
  try {
    await requireAllPrefixes(stack.platform, 'local')
  } finally {
    await stack.close()
  }
})

const create = async (): Promise<string> =>
  z.object({ id: z.string() }).parse((await stack.call('/v1/sessions', { body: stack.start() })).json).id
const append = (id: string, count: number) => {
  const facts: Fact[] = Array.from({ length: count }, (_, n) => ({
    type: 'error',
    data: { message: `m${n}` },
  }))
  return transition(stack.platform, { team: 'local', id }, () => ({ actor: system, facts }))
}
const segmentKeys = async (id: string): Promise<string[]> => {
  const keys: string[] = []
  for await (const key of stack.platform.blobs.list(objectKey.journalPrefix('local', id))) keys.push(key)
  return keys.toSorted()
}
const cancel = (id: string) => stack.call(`/v1/sessions/${id}/cancel`, { body: {} })
const whole = (id: string): Promise<Entry[]> =>
  stack.platform.journals.after({ team: 'local', id }, -1, 10_000)

/** Follows until the server ends the stream, or `enough` says so. */
const follow = async (
  path: string,
  options: { headers?: Record<string, string>; enough?: (seen: EventSourceMessage[]) => boolean } = {},
): Promise<EventSourceMessage[]> => {
  const broken = new AbortController()
  const headers = {
    authorization: `Bearer ${stack.adminToken}`,
    accept: 'text/event-stream',
    ...options.headers,
  }
  const answer = await fetch(`${stack.url}${path}`, { headers, signal: broken.signal })
  expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/)
  const seen: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => seen.push(event) })
  for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    parser.feed(text)
    if (options.enough?.(seen)) {
      broken.abort()
      break
    }
  }
  return seen
}
const sequences = (events: EventSourceMessage[]) => events.map(({ id }) => Number(id))
const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

describe('following a session', () => {
  it('tells everything once and in order, over many segments and pages, and ends with the session', async () => {
    const id = await create()
    // More than a page of entries, in segments that no page ends with.
    for (let n = 0; n < 7; n++) await append(id, 183)
    const live = follow(`/v1/sessions/${id}/events`)
    await sleep(200)
    await append(id, 3)
    await cancel(id)
    const events = await live
    const last = sequences(events).at(-1) ?? -1
    expect(sequences(events)).toEqual(upTo(0, last))
    expect(events.at(-1)?.event).toBe('state_changed')
    const entries = await whole(id)
    expect(events.map(({ data }) => JSON.parse(data))).toEqual(entries.slice(0, last + 1))
  }, 30_000)

  it('goes on from the last entry that a broken-off reader saw, header before query', async () => {
    const id = await create()
    for (const count of [3, 1, 4]) await append(id, count)
    const first = await follow(`/v1/sessions/${id}/events`, { enough: (seen) => seen.length >= 5 })
    const from = sequences(first)[4] ?? -1
    await cancel(id)
    const path = `/v1/sessions/${id}/events?after=0`
    const rest = await follow(path, { headers: { 'last-event-id': String(from) } })
    expect(sequences(rest)[0]).toBe(from + 1)
    expect(sequences(rest)).toEqual(upTo(from + 1, sequences(rest).at(-1) ?? -1))
  }, 30_000)

  it('ends at once for a reader who has seen the end', async () => {
    const id = await create()
    await cancel(id)
    const head = (await whole(id)).length - 1
    for (let from = 0; from <= head; from++) {
      const events = await follow(`/v1/sessions/${id}/events?after=${from}`)
      for (const sequence of sequences(events)) expect(sequence).toBeGreaterThan(from)
    }
  }, 30_000)

  it('tells only the types asked for, and still ends', async () => {
    const id = await create()
    await append(id, 2)
    await cancel(id)
    const events = await follow(`/v1/sessions/${id}/events?types=session_created,session_cancelled`)
    expect(events.map(({ event }) => event)).toEqual(['session_created', 'session_cancelled'])
  })

  it('answers 204 to a reader who has all of it, also when its types let nothing through', async () => {
    const id = await create()
    await cancel(id)
    // What tidies up behind the terminal entry is told of too.
    const settled = () => stack.platform.sessions.require({ team: 'local', id })
    await vi.waitFor(async () => expect((await settled()).runtime.settled).toBe(true), { timeout: 20_000 })
    const headers = { accept: 'text/event-stream' }
    const head = (await settled()).journal_head.sequence
    for (const query of ['', '&types=contract_proposed'])
      expect((await stack.call(`/v1/sessions/${id}/events?after=${head}${query}`, { headers })).status).toBe(
        204,
      )
    expect(await follow(`/v1/sessions/${id}/events?types=contract_proposed`)).toEqual([])
  })
})

describe('a cursor', () => {
  const page = (id: string, query: string, header?: string) =>
    stack.call(`/v1/sessions/${id}/events${query}`, header ? { headers: { 'last-event-id': header } } : {})

  it('may name its session, and the header wins over the query', async () => {
    const id = await create()
    await append(id, 4)
    const { json } = await page(id, '?after=0&limit=2')
    expect(json).toMatchObject({ next_after: 2, next_cursor: `${id}:2`, more: true })
    const further = [
      page(id, `?after=${id}:2&limit=1`),
      page(id, '?limit=1', `${id}:2`),
      page(id, '?after=0&limit=1', '2'),
      page(id, '?after=nonsense&limit=1', '2'),
    ]
    for (const answer of await Promise.all(further))
      expect(answer.json, answer.text).toMatchObject({ data: [{ sequence: 3 }], next_cursor: `${id}:3` })
    expect((await page(id, `?after=${id}:-1&limit=1`)).json).toMatchObject({ data: [{ sequence: 0 }] })
    await cancel(id)
    const live = await follow(`/v1/sessions/${id}/events?after=0`, {
      headers: { 'last-event-id': `${id}:4` },
    })
    expect(sequences(live)[0]).toBe(5)
  })

  it('that is none, of another session or beyond the head is refused and named, for pages and streams', async () => {
    const [id, other] = [await create(), await create()]
    const cursors = ['x', '-2', '1.5', '+1', '007', '1e1', '0x1', '999999', `${id}:999999`, `${other}:0`]
    for (const cursor of [...cursors, `${id}:`, `${id}:x`, `:1`, `${id}:1:1`, '9'.repeat(400)])
      for (const accept of ['application/json', 'text/event-stream']) {
        const query = `?after=${encodeURIComponent(cursor)}`
        const byQuery = await stack.call(`/v1/sessions/${id}/events${query}`, { headers: { accept } })
        requireProblem(byQuery, 'invalid_cursor')
        expect(paths(byQuery)).toEqual(['after'])
        const headers = { accept, 'last-event-id': cursor }
        const byHeader = await stack.call(`/v1/sessions/${id}/events?after=0`, { headers })
        requireProblem(byHeader, 'invalid_cursor')
        expect(paths(byHeader)).toEqual(['Last-Event-ID'])
      }
    requireProblem(await page(id, '?after='), 'invalid_cursor')
    await cancel(id)
    await cancel(other)
  })
})

describe('pages of entries', () => {
  it('and streams of a type that no entry has are refused: a slip of the pen is told of', async () => {
    const id = await create()
    for (const accept of ['application/json', 'text/event-stream']) {
      const path = `/v1/sessions/${id}/events?types=session_created,sesion_cancelled`
      const answer = await stack.call(path, { headers: { accept } })
      requireProblem(answer, 'invalid_request')
      expect(paths(answer)).toEqual(['types'])
    }
    await cancel(id)
  })

  it('end with no cursor for a next one, and with the place to ask from later', async () => {
    const id = await create()
    const { json } = await stack.call(`/v1/sessions/${id}/events?limit=1000`)
    const { sequence } = (await stack.platform.sessions.require({ team: 'local', id })).journal_head
    expect(json).toMatchObject({ next_after: sequence, next_cursor: null, more: false })
    await cancel(id)
  })

  it('and the journal are never a part that looks like the whole, when a segment is missing', async () => {
    const id = await create()
    await append(id, 3)
    await append(id, 3)
    const { blobs } = stack.platform
    const [, last = ''] = [...(await segmentKeys(id))].slice(-2)
    const text = await blobs.get(last)
    await blobs.remove([last])
    for (const query of ['', '?limit=1000', `?after=${id}:2`])
      requireProblem(await stack.call(`/v1/sessions/${id}/events${query}`), 'journal_damaged')
    await expect(stack.call(`/v1/sessions/${id}/journal`)).rejects.toThrow()
    await blobs.put(last, text ?? '')
    expect((await stack.call(`/v1/sessions/${id}/journal`)).text.split('\n').length).toBeGreaterThan(6)
    await cancel(id)
  })

  it('cover the journal from any cursor with any size, without gap or repeat', async () => {
    const id = await create()
    for (const count of [3, 9, 1]) await append(id, count)
    const all = await whole(id)
    const page = z.object({
      data: z.array(z.object({ sequence: z.number() })),
      next_after: z.number(),
      more: z.boolean(),
    })
    for (const limit of [1, 4, 1000]) {
      const seen: number[] = []
      for (let after = -1, more = true; more; ) {
        const answer = page.parse(
          (await stack.call(`/v1/sessions/${id}/events?after=${after}&limit=${limit}`)).json,
        )
        seen.push(...answer.data.map(({ sequence }) => sequence))
        after = answer.next_after
        more = answer.more
      }
      expect(seen).toEqual(upTo(0, all.length - 1))
    }
    const lines = (await stack.call(`/v1/sessions/${id}/journal`)).text.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toEqual(all)
    await cancel(id)
  })

  it('say exactly whether there is more, for any limit, cursor and segments', async () => {
    const id = await create()
    let head = (await whole(id)).length - 1
    const one = fc.record({
      grow: fc.nat({ max: 5 }),
      limit: fc.integer({ min: 1, max: 12 }),
      from: fc.nat(),
    })
    await fc.assert(
      fc.asyncProperty(one, async ({ grow, limit, from }) => {
        if (grow > 0) head = (await append(id, grow)).journal_head.sequence
        const after = (from % (head + 2)) - 1
        const { json } = await stack.call(`/v1/sessions/${id}/events?after=${after}&limit=${limit}`)
        const last = Math.min(after + limit, head)
        const more = last < head
        expect(json).toMatchObject({ next_after: last, next_cursor: more ? `${id}:${last}` : null, more })
        expect(z.array(z.object({ sequence: z.number() })).parse(json.data)).toEqual(
          upTo(after + 1, last).map((sequence) => ({ sequence })),
        )
      }),
      { numRuns: 25 },
    )
    await cancel(id)
  }, 60_000)
})

it('is proven while others write to the session', async () => {
  const id = await create()
  const writes = (async () => {
    for (let n = 0; n < 30; n++) await append(id, 2)
  })()
  for (let n = 0; n < 15; n++) {
    const { json } = await stack.call(`/v1/sessions/${id}/journal/verify`)
    expect(json, JSON.stringify(json)).toMatchObject({ ok: true })
  }
  await writes
  await cancel(id)
}, 30_000)
