import { createApp } from '../../functions/api/app.ts'
import { newSecret } from '../../lib/ids.ts'
import type { Role } from '../../lib/team/roles.ts'
import type { Pieces } from './pieces.ts'

type Body = string | Uint8Array
export type Reply = { status: number; headers: Headers; bytes: Buffer; json: Record<string, unknown> }

const parsed = (bytes: Buffer): Record<string, unknown> => {
  try {
    return Object(JSON.parse(bytes.toString()))
  } catch {
    return {}
  }
}

/** The API over the pieces, as one person of a team calls it. */
export const apiOver = async ({ platform }: Pieces, team: string, role: Role = 'admin') => {
  const faults: string[] = []
  const app = createApp(platform, { version: 'test', log: ({ error }) => faults.push(error) })
  const secret = newSecret()
  await platform.tokens.add(secret, { kind: 'person', team, principal: 'ada', role }, null)
  const call = async (path: string, body?: unknown, more: Record<string, string> = {}): Promise<Reply> => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...more }
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await app.fetch(new Request(`http://gatehouse${path}`, init))
    const bytes = Buffer.from(await answer.arrayBuffer())
    return { status: answer.status, headers: answer.headers, bytes, json: parsed(bytes) }
  }
  /** Uploads bytes for an import, as a plain client would; its id. */
  const upload = async (bytes: Body): Promise<string> => {
    const { json } = await call('/v1/imports', {})
    const put = await fetch(String(json.upload_url), { method: 'PUT', body: new Blob([bytes]) })
    if (!put.ok) throw new Error(`the upload answered ${put.status}`)
    return String(json.import_id)
  }
  return {
    call,
    upload,
    faults,
    run: (importId: string, body: unknown = { kind: 'archive' }, more?: Record<string, string>) =>
      call(`/v1/imports/${importId}`, body, more),
  }
}
export type Api = Awaited<ReturnType<typeof apiOver>>
