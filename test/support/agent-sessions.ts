import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../functions/api/app.ts'
import { listenOnLoopback, stopServer } from '../../infra/local/loopback.ts'
import { newId, newSecret } from '../../lib/ids.ts'
import type { Batch } from '../../lib/journal/agent/write-order.ts'
import { type Appended, entriesSchema, refusalSchema } from '../../lib/session/agent-protocol.ts'
import { journalStateSchema, leaseSchema } from '../../lib/session/protocol.ts'
import type { Step } from '../../lib/session/states.ts'
import { carryOut } from '../../lib/store/effects.ts'
import { type Pieces, startPieces } from './pieces.ts'
import { creationChange, system } from './sessions.ts'

type Call = { body?: unknown; token?: string; headers?: Record<string, string> }
export type Answer = { status: number; headers: Headers; body: unknown }

export const problemOf = ({ body }: Answer) =>
  z
    .object({
      code: z.string(),
      detail: z.string(),
      errors: z.array(z.object({ path: z.string(), message: z.string() })).default([]),
      refusal: refusalSchema.optional(),
    })
    .parse(body)

/** The embedded services under the API, without machine and workers; sessions are put where a test needs them. */
export const startAgentStack = async (directory: string) => {
  const pieces: Pieces = await startPieces(directory)
  const { platform } = pieces
  const faults: string[] = []
  const app = createApp(platform, { version: 'test', log: ({ error }) => faults.push(error) })
  const team = 'team'
  const tokenOf = async (role: 'viewer' | 'operator'): Promise<string> => {
    const secret = newSecret()
    await platform.tokens.add(secret, { kind: 'person', team, principal: 'ada', role }, null)
    return secret
  }
  const tokens = { viewer: await tokenOf('viewer'), operator: await tokenOf('operator') }

  const call = async (
    path: string,
    { body, token = tokens.operator, headers }: Call = {},
  ): Promise<Answer> => {
    const sent = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers }
    const init =
      body === undefined ? { headers: sent } : { method: 'POST', headers: sent, body: JSON.stringify(body) }
    const answer = await app.fetch(new Request(`http://gatehouse${path}`, init))
    return { status: answer.status, headers: answer.headers, body: await answer.json() }
  }

  /** A running session at a step, with a worker that holds its lease; at Code it has the command in hand. */
  const begin = async (step: Step = 'Code') => {
    const id = newId('ses')
    const key = { team, id }
    const created = creationChange(id, team)
    await platform.sessions.create(key, {
      ...created,
      facts: [
        ...created.facts,
        { type: 'step_completed', data: { step: 'Admit', trigger: 'test', next: step } },
        { type: 'state_changed', data: { from: 'created', to: 'running', trigger: 'test' } },
      ],
    })
    const worker_id = newId('wrk')
    const issued_at = new Date().toISOString()
    const command = step === 'Code' ? { id: newId('cmd'), step, issued_at } : null
    await platform.sessions.update(key, () => ({
      ...{ actor: system, facts: [] },
      runtime: {
        ...{ command, start_pending: false },
        compute: { id: worker_id, status: 'starting', started_at: issued_at, stopped_at: null },
      },
    }))
    const token = newSecret()
    await platform.tokens.add(token, { kind: 'worker', team, session_id: id, worker_id }, null)
    const takeLease = () => call('/worker/v1/lease', { token, body: { claim: newSecret() } })
    const { epoch } = leaseSchema.parse((await takeLease()).body)
    /** Its worker is launched once more, under the same name: a lease can be taken again. */
    const relaunch = () =>
      platform.sessions.update(key, ({ runtime: { compute } }) => ({
        ...{ actor: system, facts: [] },
        runtime: { compute: compute && { ...compute, status: 'starting' } },
      }))
    const entries = (batch_id: string, facts: readonly unknown[]): Promise<Answer> =>
      call('/worker/v1/entries', { token, body: { epoch, batch_id, facts } })
    const append = async (...facts: Batch | readonly unknown[]): Promise<Appended> => {
      const answer = await entries(newId('evt'), facts)
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
      return entriesSchema.parse(answer.body)
    }
    return {
      ...{ id, key, token, epoch, worker_id, entries, append, relaunch },
      /** Another process takes the lease. */
      loseLease: async (): Promise<void> => {
        await relaunch()
        leaseSchema.parse((await takeLease()).body)
      },
      state: async () =>
        journalStateSchema.parse((await call(`/worker/v1/journal?epoch=${epoch}`, { token })).body),
      item: () => platform.sessions.require(key),
      journal: async () =>
        platform.journals.after(await carryOut(platform, await platform.sessions.require(key)), -1, 10_000),
      verify: async (): Promise<unknown> => (await call(`/v1/sessions/${id}/journal/verify`)).body,
      fork: (from_record_id: string, headers: Record<string, string> = {}): Promise<Answer> =>
        call(`/v1/sessions/${id}/branches`, { body: { from_record_id }, headers }),
      branches: (): Promise<Answer> => call(`/v1/sessions/${id}/branches`, { token: tokens.viewer }),
      activate: (branch: string): Promise<Answer> =>
        call(`/v1/sessions/${id}/branches/${branch}/activate`, { body: {} }),
    }
  }

  /** The API on an address of its own. A call that `loses` picks is carried out, and its answer never arrives. */
  const listen = async (loses: (path: string) => boolean): Promise<string> => {
    const server = createServer(
      getRequestListener(async (request, { outgoing }) => {
        const isLost = loses(new URL(request.url).pathname)
        const answer = await app.fetch(request)
        if (isLost) outgoing.destroy()
        return answer
      }),
    )
    onTestFinished(() => stopServer(server))
    return listenOnLoopback(server)
  }

  return { pieces, platform, faults, tokens, call, begin, listen, close: () => pieces.close() }
}
export type AgentStack = Awaited<ReturnType<typeof startAgentStack>>
export type AgentSession = Awaited<ReturnType<AgentStack['begin']>>
