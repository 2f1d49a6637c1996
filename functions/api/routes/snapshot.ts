import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { GatehouseError } from '../../../lib/errors.ts'
import { branchSchema } from '../../../lib/journal/agent/records.ts'
import { recoveryOf } from '../../../lib/journal/agent/recovery.ts'
import { activeView, materialise } from '../../../lib/journal/agent/state.ts'
import { laneAt } from '../../../lib/journal/agent/store.ts'
import { modelMessages } from '../../../lib/journal/agent/transcript.ts'
import { canonical } from '../../../lib/journal/entry.ts'
import type { JournalState } from '../../../lib/journal/state.ts'
import { documentSchema } from '../../../lib/session/document.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { person } from '../auth.ts'
import type { Env } from '../env.ts'
import { answers, needs, problems } from '../openapi.ts'
import { replayed } from '../replay.ts'
import { sessionParams } from '../schemas.ts'

const sequence = z.number().int().min(0)

/** Digits alone: what else JavaScript takes for a number, the empty text included, names no entry. */
const query = z.strictObject({
  at: z
    .string()
    .regex(/^\d{1,15}$/, 'has to be the sequence of an entry')
    .optional(),
})

const snapshot = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}/snapshot',
  summary: 'What the journal comes to at one of its entries',
  description: 'Without `at`, at its last. An answer with `at` is the same for ever.',
  request: { params: sessionParams, query },
  responses: {
    200: answers(
      z.object({
        at: sequence,
        hash: z.string(),
        session: documentSchema,
        agent: z.looseObject({ tail_sequence: sequence }),
        agent_sequence: sequence.nullable(),
      }),
      'The session’s document and the agent’s state; `agent_sequence` is the agent’s last record up to there',
    ),
    ...problems,
  },
})

const action = z.object({
  tool_call_id: z.string(),
  situation: z.string(),
  may: z.array(z.string()).readonly(),
})

const transcript = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}/transcript',
  summary: 'The message list for a model at one of the journal’s entries',
  description: 'Of the branch that is active there; `recovery` says what may happen next, as of now.',
  request: { params: sessionParams, query },
  responses: {
    200: answers(
      z.object({
        at: sequence,
        branch: branchSchema.nullable(),
        recovery: z.object({ run: z.string(), new_run: z.boolean(), calls: z.array(action).readonly() }),
        messages: z.array(z.looseObject({ role: z.enum(['user', 'assistant', 'tool']) })),
      }),
      'The messages as the package `ai` has them, images by address',
    ),
    ...problems,
  },
})

/** The same value with its members in canonical order: the same bytes, whatever it was folded from. */
const ordered = <Value>(value: Value): Value => JSON.parse(canonical(JSON.parse(JSON.stringify(value))))

type Asked = { team: string; id: string; at: string | undefined }

/** The state that is asked for. Throws `invalid_request` for an entry beyond the head, and `journal_damaged`. */
const stateAt = async ({ sessions, states }: Platform, { team, id, at }: Asked): Promise<JournalState> => {
  const item = await sessions.require({ team, id })
  const { sequence: head } = item.journal_head
  const wanted = at === undefined ? head : Number(at)
  if (wanted > head) {
    const message = `the journal of ${id} ends at ${head}; ${wanted} lies beyond it`
    throw new GatehouseError('invalid_request', message, { errors: [{ path: 'at', message }] })
  }
  return replayed(() => states.at(item, wanted))
}

export const snapshotRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  app.openapi(snapshot, async (c) => {
    const { team } = person(c.get('principal'))
    const asked = { team, id: c.req.valid('param').id, at: c.req.valid('query').at }
    const { head, document, agent, agent_sequence } = await stateAt(platform, asked)
    const told = { at: head.sequence, hash: head.hash, session: document, agent_sequence }
    return c.json(ordered({ ...told, agent: materialise(agent) }), 200)
  })

  app.openapi(transcript, async (c) => {
    const { team } = person(c.get('principal'))
    const asked = { team, id: c.req.valid('param').id, at: c.req.valid('query').at }
    const { head, agent } = await stateAt(platform, asked)
    const view = activeView(agent)
    const recovery = recoveryOf(agent, new Date(platform.clock()).toISOString())
    const { branch } = laneAt(view.store, view.lane)
    return c.json(ordered({ at: head.sequence, branch, recovery, messages: modelMessages(view) }), 200)
  })
}
