import { createApp } from '../../functions/api/app.ts'
import { createApiServer } from '../../infra/local/api-server.ts'
import { listenOnLoopback, stopServer } from '../../infra/local/loopback.ts'
import { newId, newSecret } from '../../lib/ids.ts'
import type { Fact } from '../../lib/journal/facts.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { carryOut, transition } from '../../lib/store/effects.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { creationChange, system } from './sessions.ts'

export const team = 'team'

/** The API over a platform on a real HTTP server, with a viewer's token. */
export const startApiServer = async (platform: Platform) => {
  const faults: string[] = []
  const app = createApp(platform, { version: 'test', log: (line) => faults.push(line.error) })
  const server = createApiServer(app.fetch)
  const url = await listenOnLoopback(server)
  const token = newSecret()
  await platform.tokens.add(token, { kind: 'person', team, principal: 'ada', role: 'viewer' }, null)
  const authorization = `Bearer ${token}`
  return {
    server,
    faults,
    url,
    authorization,
    /** A call of the event stream; `lastId` as an event source that connects again sends it. */
    stream: (path: string, lastId?: string, signal?: AbortSignal): Promise<Response> =>
      fetch(`${url}${path}`, {
        headers: {
          ...{ authorization, accept: 'text/event-stream' },
          ...(lastId === undefined ? {} : { 'last-event-id': lastId }),
        },
        ...(signal ? { signal } : {}),
      }),
    close: () => stopServer(server),
  }
}
export type ApiServer = Awaited<ReturnType<typeof startApiServer>>

/** A new session with its first entries written. */
export const newStored = async (platform: Platform): Promise<string> => {
  const id = newId('ses')
  await carryOut(platform, (await platform.sessions.create({ team, id }, creationChange(id, team))).item)
  return id
}

export const errors = (count: number, text = 'it broke'): Fact[] =>
  Array.from({ length: count }, (_, n) => ({ type: 'error', data: { message: `${n} ${text}` } }))

/** What any writer does: one conditional write, then the outbox to the journal. */
export const append = (platform: Platform, id: string, facts: Fact[]): Promise<SessionItem> =>
  transition(platform, { team, id }, () => ({ actor: system, facts }))

export const terminalFact: Fact = {
  type: 'state_changed',
  data: { from: 'created', to: 'abandoned', trigger: 'test' },
}
