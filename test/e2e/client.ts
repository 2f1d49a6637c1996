import { setTimeout as sleep } from 'node:timers/promises'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { z } from 'zod'
import { problemSchema, reviewSchema, sessionSchema } from '../../functions/api/schemas.ts'
import { type Entry, entrySchema } from '../../lib/journal/entry.ts'
import type { startSessionSchema } from '../../lib/session/start.ts'

export type SessionView = z.infer<typeof sessionSchema>
export type ReviewView = z.infer<typeof reviewSchema>
type GateKind = NonNullable<SessionView['gate']>['kind']
export type Start = z.input<typeof startSessionSchema>

export type Answer = { status: number; headers: Headers; body: unknown }

/** The API as a person's program uses it: real HTTP with one token. */
export const createClient = (url: string, token: string) => {
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> => {
    const response = await fetch(`${url}${path}`, {
      method,
      redirect: 'follow',
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = /[/+]json$/.test((response.headers.get('content-type') ?? '').split(';')[0] ?? '')
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
  }

  const expectOk = (answer: Answer): unknown => {
    if (answer.status >= 300) throw new Error(`answered ${answer.status}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  const get = async (id: string): Promise<SessionView> =>
    sessionSchema.parse(expectOk(await call('GET', `/v1/sessions/${id}`)))

  /** The entries after a sequence as the live stream gives them, up to and with the first that `last` accepts. */
  const follow = async (id: string, last: (entry: Entry) => boolean, after = -1): Promise<Entry[]> => {
    const stop = new AbortController()
    const response = await fetch(`${url}/v1/sessions/${id}/events?after=${after}`, {
      headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
      signal: stop.signal,
    })
    const entries: Entry[] = []
    const messages = response.body
      ?.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream())
    for await (const message of messages ?? []) {
      const entry = entrySchema.parse(JSON.parse(message.data))
      entries.push(entry)
      if (last(entry)) break
    }
    stop.abort()
    return entries
  }

  const isEnd = (entry: Entry) =>
    entry.type === 'state_changed' &&
    ['merged', 'reported', 'failed', 'abandoned'].includes(String(entry.data.to))

  /** Waits for the next gate of a kind, or of one of several, or the session's end. */
  const untilGate = async (
    id: string,
    kinds: GateKind | readonly GateKind[],
    after = -1,
  ): Promise<SessionView> => {
    const isAsked = ({ type, data }: Entry) =>
      type === 'gate_opened' && [kinds].flat().some((kind) => kind === data.kind)
    await follow(id, (entry) => isEnd(entry) || isAsked(entry), after)
    return get(id)
  }

  /** Waits until a session has ended and nothing of it runs any more; the stream ends before that. */
  const settled = async (id: string): Promise<SessionView> => {
    for (let tries = 0; tries < 400; tries++) {
      const session = await get(id)
      if (session.execution_stopped) return session
      await sleep(50)
    }
    throw new Error('the session did not settle')
  }

  const review = async (id: string): Promise<ReviewView> =>
    reviewSchema.parse(expectOk(await call('GET', `/v1/sessions/${id}/review`)))

  return {
    url,
    call,
    get,
    follow,
    untilGate,
    settled,
    review,
    start: async (body: Start): Promise<SessionView> =>
      sessionSchema.parse(expectOk(await call('POST', '/v1/sessions', body))),
    untilEnd: async (id: string, after = -1): Promise<SessionView> => {
      await follow(id, isEnd, after)
      return get(id)
    },
    confirm: async (session: SessionView) =>
      expectOk(
        await call('POST', `/v1/sessions/${session.id}/contract/confirm`, {
          contract_hash: session.contract_hash,
        }),
      ),
    approve: async (id: string) =>
      expectOk(
        await call('POST', `/v1/sessions/${id}/review/approve`, { review_id: (await review(id)).review_id }),
      ),
    cancel: (id: string) => call('POST', `/v1/sessions/${id}/cancel`, {}),
    verify: async (id: string) => expectOk(await call('GET', `/v1/sessions/${id}/journal/verify`)),
    journal: async (id: string): Promise<Entry[]> =>
      String(expectOk(await call('GET', `/v1/sessions/${id}/journal`)))
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => entrySchema.parse(JSON.parse(line))),
    problem: (answer: Answer) => problemSchema.parse(answer.body),
  }
}

export type Client = ReturnType<typeof createClient>
