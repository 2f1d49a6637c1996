import { createHash } from 'node:crypto'
import { IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { foreignCaller } from '../../../functions/loopback.ts'
import type { KeyPair } from './key-pair.ts'
import { Refusal, refuseJson } from './refusal.ts'
import { prove, type Service } from './signature.ts'

/** As much as the largest request of DynamoDB. */
const mostBytes = 16 << 20

/**
 * Puts a door in front of a server of AWS JSON: what listens to its requests from here on hears only of those that are
 * whole and signed with the key pair, body and all. The others are answered at the door.
 */
export const guardJson = (server: Server, { keys, service }: { keys: KeyPair; service: Service }): void => {
  const inside = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    admitted(request, keys, service).then(
      (whole) => {
        for (const listener of inside) Reflect.apply(listener, server, [whole, response])
      },
      (error: unknown) => turnAway(request, response, error),
    )
  })
}

const admitted = async (
  request: IncomingMessage,
  keys: KeyPair,
  service: Service,
): Promise<IncomingMessage> => {
  const foreign = foreignCaller(request)
  if (foreign !== null) throw new Refusal('foreign', foreign)
  if (request.headers.authorization === undefined)
    throw new Refusal('unsigned', 'the request has to be signed with the key of this home, in its headers')
  const body = await bodyOf(request)
  const { method = '', url = '', headers } = request
  const { payload } = await prove({ method, target: url, headers }, { keys, service, now: Date.now(), body })
  if (payload !== null && payload !== createHash('sha256').update(body).digest('hex'))
    throw new Refusal('body', 'the body is not the one whose SHA-256 was signed')
  return again(request, body)
}

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > mostBytes) throw new Refusal('body', `a request may hold ${mostBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** A request whose body was read, as one whose body is still to be read. */
const again = (request: IncomingMessage, body: Buffer): IncomingMessage => {
  const { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor } = request
  const copy = new IncomingMessage(request.socket)
  Object.assign(copy, {
    method,
    url,
    rawHeaders,
    httpVersion,
    httpVersionMajor,
    httpVersionMinor,
    complete: true,
  })
  copy.headers = headers
  copy.push(body)
  copy.push(null)
  return copy
}

/** A caller that went away in the middle of its request is owed nothing. */
const turnAway = (request: IncomingMessage, response: ServerResponse, error: unknown): void => {
  if (error instanceof Refusal) refuseJson(response, error)
  else request.destroy()
}
