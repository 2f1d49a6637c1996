import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { PutCommand } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { follow } from '../../../functions/api/follow.ts'
import { limits } from '../../../lib/limits.ts'
import { changeItem, type SessionItem } from '../../../lib/session/item.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { removeSession } from '../../../lib/store/retention.ts'
import { sessionPut } from '../../../lib/store/sessions.ts'
import { createTail } from '../../../lib/store/tail.ts'
import { temporaryFolder } from '../../repositories.ts'
import {
  type ApiServer,
  append,
  errors,
  newStored,
  startApiServer,
  team,
  terminalFact,
} from '../../support/api-server.ts'
import { allEvents, eventsOf } from '../../support/event-source.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { at, newSession, system } from '../../support/sessions.ts'

let pieces: Pieces
let api: ApiServer
/** Reads of the bucket, by the session whose journal was read. */
const reads = new Map<string, number>()
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
  api = await startApiServer(pieces.platform)
  pieces.clients.s3.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        const id = /ses_[0-9a-z]+/.exec(String(Object(args.input).Key))?.[0]
        if (commandName === 'GetObjectCommand' && id) reads.set(id, (reads.get(id) ?? 0) + 1)
        return next(args)
      },
    { step: 'initialize', name: 'reads' },
  )
}, 60_000)
afterAll(async () => {
  await api.close()
  await pieces.close()
})

const path = (id: string) => `/v1/sessions/${id}/events`
const upTo = (last: number) => Array.from({ length: last + 1 }, (_, n) => n)
const readsOf = (id: string) => reads.get(id) ?? 0

/** A request by a plain socket, which reads only when it is told to. */
const ask = (method: 'GET' | 'HEAD', id: string): Socket => {
  const { hostname, port } = new URL(api.url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.pause()
  socket.write(
    `${method} ${path(id)} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: ${api.authorization}\r\n` +
      'Accept: text/event-stream\r\nConnection: close\r\n\r\n',
  )
  return socket
}

/** Waits until a follower of another session has read the bucket so often at its leisure. */
const meanwhile = async (times: number): Promise<void> => {
  const id = await newStored(pieces.platform)
  const leave = new AbortController()
  const answer = await api.stream(path(id), undefined, leave.signal)
  await vi.waitFor(() => expect(readsOf(id)).toBeGreaterThan(times), { timeout: 20_000 })
  leave.abort()
  await answer.text().catch(() => {})
}

/** A finished session with a journal of at least so many bytes, in segments of the largest size that a write can have. */
const large = async (bytes: number): Promise<{ item: SessionItem; segments: number }> => {
  const { journals } = pieces.platform
  let item = { ...newSession(), team }
  let segments = 1
  const grow = async (facts: ReturnType<typeof errors>) => {
    item = changeItem({ ...item, outbox: [] }, { actor: system, facts }, at(0))
    await journals.drain(item)
    segments += 1
  }
  await journals.drain(item)
  const text = 'x'.repeat(6_000)
  for (let written = 0; written < bytes; written += 50 * text.length) await grow(errors(50, text))
  await grow([terminalFact])
  item = { ...item, outbox: [] }
  await pieces.clients.dynamo.send(new PutCommand(sessionPut(pieces.settings.table, item, 0)))
  return { item, segments }
}

describe('a reader that does not read', () => {
  it('holds back the reads for it, and finds every entry once it does', async () => {
    const bytes = 24_000_000
    const { item, segments } = await large(bytes)
    const last = item.journal_head.sequence
    const answered = Promise.withResolvers<ServerResponse>()
    api.server.once('request', (_request, response) => answered.resolve(response))
    const slow = ask('GET', item.id)
    const response = await answered.promise

    // A reader beside it gets everything; the time that takes would have been enough for the other.
    const healthy = await allEvents(await api.stream(path(item.id)))
    expect(healthy.map(({ id }) => Number(id))).toEqual(upTo(last))
    const sent = response.socket?.bytesWritten ?? Number.POSITIVE_INFINITY
    const read = readsOf(item.id)

    // What the operating system takes for a socket comes to some megabytes; a page lies in front of it.
    expect(sent).toBeLessThan(bytes / 2)
    expect(response.socket?.bytesWritten).toBe(sent)
    expect(response.writableLength).toBeLessThan(2 * limits.journalBatch.entries * 6_200)
    expect(read).toBeLessThan(segments * 1.5)

    const texts: Buffer[] = []
    slow.on('data', (chunk) => texts.push(chunk))
    slow.resume()
    await new Promise((resolve) => slow.once('end', resolve))
    const body = Buffer.concat(texts).toString()
    expect([...body.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))).toEqual(upTo(last))
  }, 60_000)
})

describe('a reader that leaves', () => {
  it('takes its following along: after 200 of them nothing is read any more', async () => {
    const id = await newStored(pieces.platform)
    const open = new Set<ServerResponse>()
    api.server.on('request', (_request, response) => {
      open.add(response)
      response.once('close', () => open.delete(response))
    })
    const answers = await Promise.all(Array.from({ length: 200 }, () => api.stream(path(id))))
    expect(open.size).toBe(200)
    for (const answer of answers) for await (const events of eventsOf(answer)) if (events.length > 0) break
    await vi.waitFor(() => expect(open.size).toBe(0), { timeout: 20_000 })
    const before = readsOf(id)
    await meanwhile(5)
    // One that was under way may have ended since.
    expect(readsOf(id)).toBeLessThanOrEqual(before + 1)
  }, 60_000)

  it('may leave while it does not read', async () => {
    const { item } = await large(8_000_000)
    const socket = ask('GET', item.id)
    await vi.waitFor(() => expect(readsOf(item.id)).toBeGreaterThan(0), { timeout: 20_000 })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.destroy()
    await closed
    await meanwhile(3)
    const before = readsOf(item.id)
    await meanwhile(3)
    expect(readsOf(item.id)).toBe(before)
  }, 60_000)

  it('of whom only the head was asked for has nothing read for it', async () => {
    const id = await newStored(pieces.platform)
    const socket = ask('HEAD', id)
    const texts: Buffer[] = []
    socket.on('data', (chunk) => texts.push(chunk))
    socket.resume()
    await new Promise((resolve) => socket.once('end', resolve))
    expect(Buffer.concat(texts).toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(readsOf(id)).toBe(0)
  })
})

describe('a stream', () => {
  const following = (item: SessionItem, clock: () => number, signal: AbortSignal) =>
    follow({ clock, tail: createTail(pieces.platform, { firstMs: 1, mostMs: 5, lookMs: 20 }) }, item, {
      from: item.journal_head.sequence,
      wanted: () => true,
      signal,
    })

  it('says every 15 seconds that it is there, by comments that no reader takes for an event', async () => {
    const id = await newStored(pieces.platform)
    const item = await pieces.platform.sessions.require({ team, id })
    const leave = new AbortController()
    let now = 0
    const texts = following(item, () => (now += limits.ssePingMs), leave.signal)
    for (let n = 0; n < 4; n++) expect((await texts.next()).value).toMatch(/^: [a-z ]+\n\n$/)
    leave.abort()
    expect(await texts.next()).toEqual({ done: true, value: undefined })
  })

  it('says so while all that happens is of types that nobody asked for', async () => {
    const id = await newStored(pieces.platform)
    const item = await pieces.platform.sessions.require({ team, id })
    const { signal } = new AbortController()
    let now = 0
    const texts = follow({ clock: () => now, tail: createTail(pieces.platform) }, item, {
      from: item.journal_head.sequence,
      wanted: ({ type }) => type === 'state_changed',
      signal,
    })
    expect((await texts.next()).value).toBe(': following\n\n')
    const silent = texts.next()
    await append(pieces.platform, id, errors(1))
    now += limits.ssePingMs
    await append(pieces.platform, id, errors(1))
    expect((await silent).value).toBe(': nothing new\n\n')
    const rest = texts.next()
    await append(pieces.platform, id, [terminalFact])
    expect((await rest).value).toMatch(/^id: \d+\nevent: state_changed\n/)
    expect((await texts.next()).done).toBe(true)
  })

  it('of a session that is removed ends with a resync that has no id', async () => {
    const id = await newStored(pieces.platform)
    await append(pieces.platform, id, [terminalFact])
    const item = await pieces.platform.sessions.update({ team, id }, () => ({
      ...{ actor: system, facts: [] },
      runtime: { settled: true },
    }))
    // The follower has seen less than there is when it goes.
    const behind = { ...item, document: { ...item.document, state: 'created' as const } }
    const texts = following(behind, Date.now, new AbortController().signal)
    expect(await removeSession(pieces.platform, item)).toBe(true)
    const seen: string[] = []
    for await (const text of texts) seen.push(text)
    expect(seen[0]).toBe(': following\n\n')
    expect(seen.slice(1)).toEqual([
      `event: resync\ndata: ${JSON.stringify({ code: 'not_found', message: `there is no session ${id}` })}\n\n`,
    ])
  })

  it('over a damaged journal tells what is whole and ends with a resync', async () => {
    const id = await newStored(pieces.platform)
    const { journal_head } = await append(pieces.platform, id, errors(2))
    const key = objectKey.segment(team, id, journal_head.sequence - 1)
    await pieces.platform.blobs.put(key, '{"half": ')
    const events = await allEvents(await api.stream(`${path(id)}?after=${journal_head.sequence - 2}`))
    expect(events.map(({ event, id }) => [event, id])).toEqual([['resync', undefined]])
    expect(JSON.parse(events[0]?.data ?? '')).toMatchObject({ code: 'journal_damaged' })
  })
})

it('a server that stops waits for no stream, read or not, and leaves no follower behind', async () => {
  const own = await startApiServer(pieces.platform)
  const id = await newStored(pieces.platform)
  const answers = await Promise.all(Array.from({ length: 5 }, () => own.stream(path(id))))
  // Some are read, and of the others nobody takes what has come.
  const read = Promise.allSettled(answers.slice(2).map((answer) => answer.text()))
  await vi.waitFor(() => expect(readsOf(id)).toBeGreaterThan(2), { timeout: 20_000 })
  await own.close()
  // Cut off, and not ended as if their stories were told.
  expect((await read).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  const before = readsOf(id)
  await meanwhile(5)
  expect(readsOf(id)).toBeLessThanOrEqual(before + 1)
  expect(own.faults).toEqual([])
}, 60_000)
