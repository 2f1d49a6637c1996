import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import {
  type Command,
  completeRequestSchema,
  entriesRequestSchema,
  heartbeatRequestSchema,
  type QuestionAnswer,
  questionRequestSchema,
  type Result,
  retainRequestSchema,
  type StatedFact,
  uploadsRequestSchema,
} from '../../../lib/session/protocol.ts'

const deadline_at = '2030-01-01T00:10:00.000Z'
const pending: QuestionAnswer = { status: 'pending', answer: null, deadline_at }
const superseded = { code: 'superseded', detail: 'it has ended' }

type Reply = { status?: number; body: unknown }
type Question = { prompt: string; answer: QuestionAnswer }

/**
 * The other end of the worker protocol under a test's control: hands out the commands that it is given, and keeps what a
 * worker says and uploads.
 */
export const startWorkerApi = async () => {
  const sessionId = newId('ses')
  const queue: Command[] = []
  const results = new Map<string, PromiseWithResolvers<Result>>()
  const questions = new Map<string, Question>()
  const state = {
    /** Every call that a current worker makes is refused from now on. */
    ended: false,
    /** Whether the work of an ended session is taken. */
    keeps: true,
    hangUploads: false,
    /** A question that was just put is not known any more. */
    forgets: false,
    guidance: [] as string[],
    events: [] as StatedFact[],
    store: new Map<string, Buffer>(),
    retained: [] as unknown[],
    calls: [] as string[],
  }
  const resultOf = (id: string) => {
    const known = results.get(id) ?? Promise.withResolvers<Result>()
    results.set(id, known)
    return known
  }
  const refusal = (mayKeep = false): Reply | null =>
    state.ended && !(mayKeep && state.keeps) ? { status: 409, body: superseded } : null
  const until = async (condition: () => boolean) => {
    while (!state.ended && !condition()) await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const ask = (body: unknown): Reply => {
    const { request_id, prompt } = questionRequestSchema.parse(body)
    const isBusy = [...questions].some(([id, { answer }]) => id !== request_id && answer.status === 'pending')
    if (isBusy)
      return { status: 409, body: { code: 'illegal_transition', detail: 'no question can be asked now' } }
    const question = questions.get(request_id) ?? { prompt, answer: pending }
    if (!state.forgets) questions.set(request_id, question)
    return { body: question.answer }
  }
  const address = { url: '' }
  const store = (kind: string, name: string) => `${address.url}/store/${kind}/${name}`

  const answer = async (name: string, query: URLSearchParams, body: unknown): Promise<Reply> => {
    const mayKeep = name === 'POST uploads' || name === 'POST retain'
    const refused = refusal(mayKeep)
    if (refused) return refused
    switch (name) {
      case 'POST lease':
        return { body: { session_id: sessionId, epoch: 1, expires_at: deadline_at, heartbeat_ms: 50 } }
      case 'POST heartbeat':
        heartbeatRequestSchema.parse(body)
        return { body: { expires_at: deadline_at } }
      case 'GET command': {
        await until(() => queue.length > 0)
        const command = queue.shift()
        return command ? { body: { kind: 'command', command } } : { status: 409, body: superseded }
      }
      case 'POST entries':
        state.events.push(...entriesRequestSchema.parse(body).facts)
        return { body: { sequence: 1, records: [], receipt: `receipt ${state.calls.length}` } }
      case 'POST uploads': {
        const { uploads } = uploadsRequestSchema.parse(body)
        return { body: { uploads: uploads.map((one) => ({ ...one, url: store(one.kind, one.name) })) } }
      }
      case 'POST question':
        return ask(body)
      case 'GET question': {
        const question = questions.get(query.get('request_id') ?? '')
        if (!question) return { status: 404, body: { code: 'not_found', detail: 'no such question' } }
        await until(() => question.answer.status !== 'pending')
        return refusal() ?? { body: question.answer }
      }
      case 'GET guidance':
        return { body: { messages: state.guidance } }
      case 'POST retain':
        state.retained.push(retainRequestSchema.parse(body).checkpoint)
        return { body: {} }
      case 'POST complete': {
        const { command_id, result, facts } = completeRequestSchema.parse(body)
        state.events.push(...facts)
        resultOf(command_id).resolve(result)
        return { body: { next: '', leave: false } }
      }
      default:
        return { status: 400, body: { code: 'invalid_request', detail: name } }
    }
  }

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', address.url)
    if (pathname.startsWith('/store/')) {
      const key = pathname.slice('/store/'.length)
      if (request.method === 'GET') return response.end(state.store.get(key))
      if (state.hangUploads) {
        state.calls.push('PUT, left hanging')
        return
      }
      state.store.set(key, await buffer(request))
      return response.end()
    }
    const name = `${request.method} ${pathname.replace('/worker/v1/', '')}`
    state.calls.push(name)
    const text = (await buffer(request)).toString()
    const { status = 200, body } = await answer(
      name,
      searchParams,
      text === '' ? undefined : JSON.parse(text),
    )
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      const detail = error instanceof Error ? error.message : String(error)
      response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(JSON.stringify({ code: 'invalid_request', detail }))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const at = server.address()
  address.url = `http://127.0.0.1:${typeof at === 'object' ? at?.port : ''}`
  onTestFinished(() => {
    state.ended = true
    server.closeAllConnections()
    server.close()
  })

  return {
    url: address.url,
    /** The session for which the worker takes the lease. */
    sessionId,
    state,
    questions,
    store,
    /** Gives a command to the worker and waits for its result. */
    run: (command: Command): Promise<Result> => {
      queue.push(command)
      return resultOf(command.id).promise
    },
    /** Gives a command that will never come to a result. */
    give: (command: Command): void => {
      queue.push(command)
    },
  }
}
