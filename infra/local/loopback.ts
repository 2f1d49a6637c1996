import type { Server, ServerResponse } from 'node:http'

/** Listens on 127.0.0.1 alone (`port` 0 or absent: a free one) and returns the base URL; rejects when it is taken. */
export async function listenOnLoopback(server: Server, port = 0): Promise<string> {
  // A client that reuses a connection must not meet the moment at which this side closes it for idleness.
  server.keepAliveTimeout = 120_000
  const answering = new Set<ServerResponse>()
  inHand.set(server, answering)
  server.prependListener('request', (_request, response) => {
    answering.add(response)
    response.once('close', () => {
      answering.delete(response)
      endWhenIdle(server)
    })
  })
  return listen(server, port)
}

/**
 * Stops listening, lets requests in hand finish (two seconds at most) and ends every connection. An event stream has no
 * end to wait for and its reader resumes it, so it is cut off. Resolves when the server is gone; a second call does
 * nothing.
 */
export async function stopServer(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = new Promise<void>((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()))
  })
  for (const response of inHand.get(server) ?? []) if (isEventStream(response)) response.destroy()
  endWhenIdle(server)
  const impatience = setTimeout(() => server.closeAllConnections(), 2_000)
  await closed
  clearTimeout(impatience)
}

const inHand = new WeakMap<Server, Set<ServerResponse>>()

/** By what was asked for: headers that were written at once are not kept. */
function isEventStream({ req, headersSent }: ServerResponse): boolean {
  return headersSent && /\btext\/event-stream\b/.test(req.headers.accept ?? '')
}

function endWhenIdle(server: Server): void {
  if (!server.listening && !inHand.get(server)?.size) server.closeAllConnections()
}

function listen(server: Server, port: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  server.once('error', reject)
  server.listen(port, '127.0.0.1', () => {
    server.off('error', reject)
    const address = server.address()
    if (address === null || typeof address === 'string') reject(new Error('the server has no TCP address'))
    else resolve(`http://127.0.0.1:${address.port}`)
  })
  return promise
}
