import { randomUUID } from 'node:crypto'
import { createServer, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { getRequestListener } from '@hono/node-server'
import { problemAnswer } from '../../functions/api/problem.ts'
import { foreignCaller } from '../../functions/loopback.ts'
import { type ErrorCode, GatehouseError } from '../../lib/errors.ts'
import { limits } from '../../lib/limits.ts'

/** In milliseconds. */
type Arrival = { headers: number; whole: number }
type Answer = Parameters<typeof getRequestListener>[0]

/**
 * The API as a server. Calls for another host and from pages of another origin are refused; so is what is no HTTP, and
 * what takes too long to arrive (`arrivalMs`), each as a problem with a request id. An answer may take as long as it does.
 */
export const createApiServer = (answer: Answer, arrivalMs: Arrival = limits.arrivalMs): Server => {
  const listener = getRequestListener(answer, {
    errorHandler: (error) => {
      const { status, headers, body } = refusal('malformed_request', String(Object(error).message))
      return new Response(body, { status, headers })
    },
  })
  const answering = new WeakMap<Duplex, ServerResponse>()
  const server = createServer(
    {
      // Who names no host is told so below, as who names another one.
      requireHostHeader: false,
      ...{ headersTimeout: arrivalMs.headers, requestTimeout: arrivalMs.whole },
      connectionsCheckingInterval: Math.min(arrivalMs.headers, arrivalMs.whole) / 2,
    },
    (request, response) => {
      answering.set(request.socket, response)
      const foreign = foreignCaller(request, { ownPages: true })
      if (foreign === null) return void listener(request, response)
      const { status, headers, body } = refusal('foreign_caller', foreign)
      response.writeHead(status, withLength(headers, body)).end(body)
    },
  )
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket)
    const isAnswered = response?.headersSent && !response.writableFinished
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswered) return void socket.destroy()
    socket.end(asText(refusal(...codeOf(error))))
  })
  return server
}

const refusal = (code: ErrorCode, detail: string) => {
  const id = randomUUID()
  const { status, headers, body } = problemAnswer(new GatehouseError(code, detail), id)
  return { status, body, headers: { ...headers, 'x-request-id': id, 'x-content-type-options': 'nosniff' } }
}

const codeOf = ({ code, message }: NodeJS.ErrnoException): [ErrorCode, string] => {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return ['request_timeout', 'the headers or the body did not arrive in time; send the call again']
  if (code === 'HPE_HEADER_OVERFLOW') return ['headers_too_large', 'send fewer or shorter headers']
  return ['malformed_request', message]
}

const withLength = (headers: Record<string, string>, body: string) => ({
  ...headers,
  'content-length': String(Buffer.byteLength(body)),
  connection: 'close',
})

const asText = ({ status, headers, body }: ReturnType<typeof refusal>): string => {
  const lines = Object.entries(withLength(headers, body)).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n')
}
