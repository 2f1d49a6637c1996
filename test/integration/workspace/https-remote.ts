import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import { temporaryFolder } from '../../repositories.ts'

const backend = (root: string, request: IncomingMessage, response: ServerResponse): void => {
  const url = new URL(request.url ?? '/', 'https://localhost')
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH,
      HOME: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_PROJECT_ROOT: root,
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'],
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'],
      REMOTE_USER: 'ada',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  request.pipe(child.stdin)
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.on('close', () => {
    const output = Buffer.concat(chunks)
    const end = output.indexOf('\r\n\r\n')
    for (const line of output.subarray(0, end).toString().split('\r\n')) {
      const [name = '', value = ''] = line.split(': ')
      if (name === 'Status') response.statusCode = Number.parseInt(value, 10)
      else response.setHeader(name, value)
    }
    response.end(output.subarray(end + 4))
  })
}

/** What is answered instead of git's own: an HTTP status, or nothing for as long as the caller stays. */
type Instead = number | 'nothing' | null

/** A git server over https that serves the bare repositories of `root`. `status` may answer instead of it. */
export const startHttps = async (
  root: string,
  status: (request: IncomingMessage) => Instead = () => null,
): Promise<string> => {
  const keys = temporaryFolder()
  const files = ['-keyout', join(keys, 'key'), '-out', join(keys, 'cert')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  execFileSync('openssl', ['req', '-x509', ...kind, ...files, ...subject], { stdio: 'ignore' })
  const server = createServer(
    { key: readFileSync(join(keys, 'key')), cert: readFileSync(join(keys, 'cert')) },
    (request, response) => {
      const answer = status(request)
      if (answer === null) return backend(root, request, response)
      if (answer === 'nothing') return
      if (answer === 401) response.setHeader('WWW-Authenticate', 'Basic realm="git"')
      response.statusCode = answer
      response.end()
    },
  ).listen(0, 'localhost')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
    vi.unstubAllEnvs()
  })
  vi.stubEnv('GIT_SSL_CAINFO', join(keys, 'cert'))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return `https://localhost:${port}`
}
