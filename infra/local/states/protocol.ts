import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isDiskFull, noRoom } from '../storage/room.ts'
import { limits } from './limits.ts'
import type { Operation } from './operations.ts'
import { ServiceError } from './service-error.ts'

const contentType = 'application/x-amz-json-1.0'
const target = 'AWSStepFunctions.'

/**
 * An HTTP server that speaks the service's protocol, AWS JSON 1.0: a POST whose `X-Amz-Target` is
 * `AWSStepFunctions.<Operation>`. Errors answer with `{"__type": "…#<Name>", "message": …}`: status 400 for those that
 * have a name, 500 for our own faults. An operation that isn't in `operations` is an `UnknownOperationException`.
 */
export function createProtocolServer(operations: Map<string, Operation>): Server {
  return createServer((request, response) => {
    answer(request, operations).then(
      (body) => send(response, 200, body),
      (error: unknown) => sendError(response, error),
    )
  })
}

async function answer(request: IncomingMessage, operations: Map<string, Operation>): Promise<object> {
  const asked = String(request.headers['x-amz-target'] ?? '')
  const name = asked.startsWith(target) ? asked.slice(target.length) : undefined
  const body = await readBody(request)
  const operation = name === undefined ? undefined : operations.get(name)
  if (request.method !== 'POST' || !operation) {
    const what = name ? `The operation ${name}` : `A ${request.method} request without a known X-Amz-Target`
    throw new ServiceError('UnknownOperationException', `${what} is not available on this endpoint.`)
  }
  return operation(parse(body))
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size <= limits.requestBytes) chunks.push(chunk)
  }
  if (size > limits.requestBytes) {
    throw new ServiceError(
      'RequestEntityTooLargeException',
      `The request is over ${limits.requestBytes} bytes.`,
    )
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body === '' ? '{}' : body)
  } catch {
    throw new ServiceError('SerializationException', 'The request is not JSON.')
  }
}

function sendError(response: ServerResponse, error: unknown): void {
  if (error instanceof ServiceError) {
    const body = { __type: `com.amazonaws.swf.service.v2.model#${error.name}`, message: error.message }
    send(response, 400, body)
    return
  }
  if (isDiskFull(error)) {
    send(response, 503, { __type: 'com.amazon.coral.service#ServiceUnavailable', message: noRoom })
    return
  }
  const message = error instanceof Error ? error.message : String(error)
  send(response, 500, { __type: 'com.amazon.coral.service#InternalFailure', message })
}

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(text),
    'x-amzn-requestid': randomUUID(),
  })
  response.end(text)
}
