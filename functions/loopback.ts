import type { IncomingMessage } from 'node:http'

/**
 * Why a request to a server on loopback comes from elsewhere; null when it does not. A page of another site reaches
 * loopback through its reader's browser, which then sends that site as `Origin`, or as `Host` where the site's own name
 * was made to point here. `ownPages` are the origins that the server itself is read at.
 */
export const foreignCaller = (
  request: IncomingMessage,
  { ownPages }: { ownPages: boolean } = { ownPages: false },
): string | null => {
  const { host, origin } = request.headers
  const hosts = hostsOf(request.socket.localPort ?? 0)
  if (!hosts.includes(host?.toLowerCase() ?? ''))
    return `this server answers to ${hosts[0]} alone; send that as Host`
  if (origin === undefined) return null
  if (ownPages && hosts.some((own) => origin === `http://${own}` && own === host?.toLowerCase())) return null
  return 'pages of another origin are not answered'
}

const hostsOf = (port: number): string[] =>
  ['127.0.0.1', 'localhost'].flatMap((name) => [`${name}:${port}`, ...(port === 80 ? [name] : [])])
