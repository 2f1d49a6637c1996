import type { Server } from 'node:http'

/** Listens on 127.0.0.1 (`port` 0 or absent: a free one) and returns the base URL; rejects when the port is taken. */
export function listenOnLoopback(server: Server, port = 0): Promise<string> {
  // A client that reuses a connection must not meet the moment at which this side closes it for idleness.
  server.keepAliveTimeout = 120_000
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

/** Ends every connection and waits until the server is gone; a second call does nothing. */
export async function stopServer(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = new Promise<void>((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()))
  })
  server.closeAllConnections()
  await closed
}
