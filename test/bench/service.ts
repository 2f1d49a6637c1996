import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp } from '../../functions/api/app.ts'
import { createApiServer } from '../../infra/local/api-server.ts'
import { listenOnLoopback, stopServer } from '../../infra/local/loopback.ts'
import { newId, newSecret } from '../../lib/ids.ts'
import { carryOut } from '../../lib/store/effects.ts'
import type { Principal } from '../../lib/store/tokens.ts'
import { startPieces } from '../support/pieces.ts'
import { creationChange } from '../support/sessions.ts'

export type Service = Awaited<ReturnType<typeof startService>>

export const team = 'team'

/** The API over HTTP and the embedded services, with a session whose worker the bench itself is. */
export const startService = async () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  const pieces = await startPieces(root)
  const { platform } = pieces
  const app = createApp(platform, { version: 'bench', log: (line) => console.error(line) })
  const server = createApiServer(app.fetch)
  const url = await listenOnLoopback(server)

  const id = newId('ses')
  const { item } = await platform.sessions.create({ team, id }, creationChange(id, team))
  const session = await carryOut(platform, item)

  /** A call in a principal's name. Throws where the answer is no success. */
  const caller = async (principal: Principal) => {
    const secret = newSecret()
    await platform.tokens.add(secret, principal, null)
    return async (path: string, body?: unknown): Promise<unknown> => {
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
      const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
      const answer = await fetch(`${url}${path}`, init)
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`)
      return answer.json()
    }
  }

  return {
    pieces,
    session,
    caller,
    close: async () => {
      await stopServer(server)
      await pieces.close()
      rmSync(root, { recursive: true, force: true })
    },
  }
}
