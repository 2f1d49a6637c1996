import { type Stack, startStack } from '../../infra/local/stack.ts'
import { newSecret } from '../../lib/ids.ts'
import type { Principal } from '../../lib/store/tokens.ts'
import { makeRepository, temporaryFolder } from '../repositories.ts'
import { aContract } from './sessions.ts'

type Call = {
  method?: string
  token?: string | null
  headers?: Record<string, string>
  body?: unknown
  raw?: string | ReadableStream
}
export type Answer = { status: number; headers: Headers; text: string; json: Record<string, unknown> }

const parsed = (text: string): Record<string, unknown> => {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** The whole stack on a fresh folder, with tokens and a client for its HTTP API. */
export const startTestStack = async (options: { concurrency?: number } = {}) => {
  const faults: string[] = []
  const stack: Stack = await startStack({
    ...{ port: 0, home: temporaryFolder(), concurrency: options.concurrency ?? 4 },
    log: (line) => faults.push(line),
  })
  const tokenFor = async (principal: Principal): Promise<string> => {
    const secret = newSecret()
    await stack.platform.tokens.add(secret, principal, null)
    return secret
  }
  const call = async (path: string, { method, token, headers, body, raw }: Call = {}): Promise<Answer> => {
    const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const answer = await fetch(`${stack.url}${path}`, {
      method: method ?? (sent === undefined ? 'GET' : 'POST'),
      redirect: 'manual',
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token ?? stack.adminToken}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent, duplex: 'half' }),
    })
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, text, json: parsed(text) }
  }
  const repository = makeRepository()
  /** A body that starts a session; its engine does nothing. */
  const start = (more: Record<string, unknown> = {}) => ({
    ...{ repo: repository.directory, intent: 'Do it', engine_command: 'true' },
    contract: aContract(),
    ...more,
  })
  return { ...stack, call, tokenFor, start, repository, faults }
}
export type TestStack = Awaited<ReturnType<typeof startTestStack>>
