import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../lib/ids.ts'
import { modelMessageSchema } from '../../../lib/journal/agent/model-message.ts'
import type { AgentFact } from '../../../lib/journal/agent/records.ts'
import { materialise } from '../../../lib/journal/agent/state.ts'
import { canonical, type Entry, fromLine, fromLines, hashOf, toLine } from '../../../lib/journal/entry.ts'
import { journalJsonSchema } from '../../../lib/journal/json-schema.ts'
import { foldState, type JournalState } from '../../../lib/journal/state.ts'
import { transition } from '../../../lib/store/effects.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { requirePrefixes } from '../../support/prefixes.ts'
import { system } from '../../support/sessions.ts'
import { assistantCalls, userSays, id as walkId } from '../../unit/journal/agent/walk.ts'
import { paths, type QuietStack, requireProblem, startQuietStack } from './quiet-stack.ts'

let stack: QuietStack
beforeAll(async () => {
  stack = await startQuietStack()
}, 60_000)
afterAll(() => stack.close())

const viewer = (path: string) => stack.call(path, { token: stack.tokens.viewer })
const append = (id: string, branch: string, ...facts: AgentFact[]) =>
  transition(stack.platform, { team: 'local', id }, () => ({
    actor: system,
    facts: facts.map((fact) => ({ ...fact, context: { branch } })),
  }))
const event = (id: string, branch: string) =>
  transition(stack.platform, { team: 'local', id }, () => ({
    actor: system,
    facts: [{ type: 'error', data: { message: 'seen' }, context: { branch } }],
  }))
const journalOf = async (id: string, query = ''): Promise<Entry[]> => {
  const answer = await viewer(`/v1/sessions/${id}/journal${query}`)
  expect(answer.status, answer.text).toBe(200)
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson')
  return fromLines(answer.text)
}
const says = (n: number): AgentFact => ({ type: 'message_committed', data: { message: userSays(n) } })

/** A session whose agent said something, forked, said more on the fork, and forked that once more. */
const forked = async () => {
  const { id } = await stack.create()
  const [first, second] = [newId('brn'), newId('brn')]
  await append(id, 'main', says(1), says(2))
  const fork = (await journalOf(id)).at(-1)
  await append(id, 'main', says(3))
  await append(id, first, branch('main', first, fork), onto(first))
  await event(id, first)
  await append(id, first, says(4))
  const again = (await journalOf(id)).at(-1)
  await append(id, first, says(5))
  await append(id, second, branch(first, second, again), onto(second))
  await append(id, second, says(6), { type: 'message_committed', data: { message: assistantCalls(7, [1]) } })
  await stack.post(`/v1/sessions/${id}/steer`, { text: 'hurry' })
  return { id, first, second, fork, again }
}
const branch = (source_branch_id: string, branch_id: string, from: Entry | undefined): AgentFact => ({
  type: 'branch_created',
  data: { source_branch_id, branch_id, from_record_id: from?.id ?? '' },
})
const onto = (branch_id: string): AgentFact => ({ type: 'active_branch_changed', data: { branch_id } })

const snapshotSchema = z.strictObject({
  at: z.number(),
  hash: z.string(),
  session: z.record(z.string(), z.unknown()),
  agent: z.record(z.string(), z.unknown()),
  agent_sequence: z.number().nullable(),
})
const snapshot = async (id: string, query: string) => {
  const answer = await viewer(`/v1/sessions/${id}/snapshot${query}`)
  expect(answer.status, answer.text).toBe(200)
  return snapshotSchema.parse(answer.json)
}
const transcriptSchema = z.strictObject({
  at: z.number(),
  branch: z.string().nullable(),
  recovery: z.object({ run: z.string(), new_run: z.boolean(), calls: z.array(z.unknown()) }),
  messages: z.array(z.looseObject({ role: z.string() })),
})
const transcript = async (id: string, query = '') => {
  const answer = await viewer(`/v1/sessions/${id}/transcript${query}`)
  expect(answer.status, answer.text).toBe(200)
  return transcriptSchema.parse(answer.json)
}

describe('a snapshot', () => {
  it('is what the journal comes to at each of its entries, and at the head when nothing is said', async () => {
    const { id } = await forked()
    const entries = await journalOf(id)
    let state: JournalState | null = null
    for (const entry of entries) {
      state = foldState(state, entry)
      const told = await snapshot(id, `?at=${entry.sequence}`)
      expect(canonical(told)).toBe(
        canonical({
          ...{ at: entry.sequence, hash: entry.hash, agent_sequence: state.agent_sequence },
          ...{ session: state.document, agent: materialise(state.agent) },
        }),
      )
    }
    const head = await snapshot(id, '')
    expect(head).toEqual(await snapshot(id, `?at=${entries.length - 1}`))
    expect(head.session).toMatchObject({ id, steering_messages: ['hurry'] })
    expect((await snapshot(id, '?at=0')).session).toMatchObject({ id, steering_messages: [] })
    await requirePrefixes(stack.platform, await stack.platform.sessions.require({ team: 'local', id }))
  }, 30_000)

  it.each(['-1', '1.5', 'x', '', '999999', '1e2', '99999999999999999999', '%20'])(
    'and a transcript at "%s" is refused',
    async (at) => {
      const { id } = await stack.create()
      for (const what of ['snapshot', 'transcript']) {
        const answer = await viewer(`/v1/sessions/${id}/${what}?at=${at}`)
        requireProblem(answer, 'invalid_request')
        expect(paths(answer)).toEqual(['at'])
      }
    },
  )

  it('takes no other word for it', async () => {
    const { id } = await stack.create()
    requireProblem(await viewer(`/v1/sessions/${id}/snapshot?att=1`), 'invalid_request')
  })
})

describe('a transcript', () => {
  it('is the message list of the branch that is active there, every call closed', async () => {
    const { id, first, second, again } = await forked()
    const texts = ({ messages }: { messages: unknown[] }) =>
      messages.flatMap((message) => {
        const { role, content } = modelMessageSchema.parse(message)
        return role === 'user' ? content.map((part) => (part.type === 'text' ? part.text : '')) : [role]
      })
    const head = await transcript(id)
    expect(texts(head)).toEqual(['message 1', 'message 2', 'message 4', 'message 6', 'assistant', 'tool'])
    expect(head).toMatchObject({
      branch: second,
      recovery: {
        ...{ run: 'unfinished_batch', new_run: false },
        calls: [{ tool_call_id: walkId('call', 1), situation: 'unrequested', may: ['request'] }],
      },
    })
    const earlier = await transcript(id, `?at=${again?.sequence}`)
    expect(texts(earlier)).toEqual(['message 1', 'message 2', 'message 4'])
    expect(earlier).toMatchObject({ branch: first, recovery: { run: 'clean', new_run: true, calls: [] } })
    expect(await transcript(id, '?at=0')).toMatchObject({ branch: 'main', messages: [] })
  })
})

describe('the journal of a branch', () => {
  it('is that of its ancestors up to each fork, and then its own', async () => {
    const { id, first, second, fork, again } = await forked()
    const all = await journalOf(id)
    const of = (branch: string, upTo = Number.POSITIVE_INFINITY) =>
      all.filter((entry) => entry.branch === branch && entry.sequence <= upTo)
    expect(await journalOf(id, '?branch=main')).toEqual(of('main'))
    expect(await journalOf(id, `?branch=${first}`)).toEqual([...of('main', fork?.sequence), ...of(first)])
    expect(await journalOf(id, `?branch=${second}`)).toEqual([
      ...of('main', fork?.sequence),
      ...of(first, again?.sequence),
      ...of(second),
    ])
    expect(of(first).some(({ kind }) => kind === 'event')).toBe(true)
    expect(new Set(all.map((entry) => entry.branch)).size).toBe(3)
  })

  it('is that of main, whole, where nothing was forked', async () => {
    const { id } = await stack.create()
    expect(await journalOf(id, '?branch=main')).toEqual(await journalOf(id))
  })

  it('is not there for a branch that is not', async () => {
    const { id } = await stack.create()
    requireProblem(await viewer(`/v1/sessions/${id}/journal?branch=${newId('brn')}`), 'not_found')
    const { first } = await forked()
    requireProblem(await viewer(`/v1/sessions/${id}/journal?branch=${first}`), 'not_found')
    // The session's own UUID is no second name of main.
    requireProblem(await viewer(`/v1/sessions/${id}/journal?branch=brn_${id.slice(4)}`), 'not_found')
  })

  it.each(['', 'master', 'brn_1', 'ses_01h455vb4pex5vsknk084sn02q'])('"%s" is refused', async (name) => {
    const { id } = await stack.create()
    requireProblem(await viewer(`/v1/sessions/${id}/journal?branch=${name}`), 'invalid_request')
  })
})

it('the JSON Schema of a journal’s lines is there for anybody, and accepts them', async () => {
  const answer = await stack.call('/schemas/journal.json', { token: null })
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/schema+json'])
  expect(answer.json).toEqual(journalJsonSchema())
  const schema = z.fromJSONSchema(answer.json)
  const { id } = await forked()
  for (const entry of await journalOf(id)) expect(schema.safeParse(entry).error).toBeUndefined()
  expect(schema.safeParse({ ...(await journalOf(id))[0], kind: 'event' }).success).toBe(false)
})

it('met no fault of ours on the way', () => {
  expect(stack.faults).toEqual([])
})

it('a snapshot of an entry has the same bytes, whatever it was folded from', async () => {
  const { id } = await stack.create()
  const { blobs, sessions } = stack.platform
  const { journal_head: head } = await sessions.require({ team: 'local', id })
  const told = () =>
    Promise.all(
      Array.from(
        { length: head.sequence + 1 },
        async (_, at) => (await viewer(`/v1/sessions/${id}/snapshot?at=${at}`)).text,
      ),
    )
  const before = await told()
  await blobs.removeAll(objectKey.snapshotPrefix('local', id))
  expect(await told()).toEqual(before)
})

it('a journal that does not replay is told as damaged, by the name of what stopped it', async () => {
  const { id } = await stack.create()
  const { blobs } = stack.platform
  const key = objectKey.segment('local', id, 0)
  const [first = '', ...others] = ((await blobs.get(key)) ?? '').split('\n')
  const entry = { ...fromLine(first), type: 'unheard_of' }
  await blobs.put(key, [toLine({ ...entry, hash: hashOf(entry) }), ...others].join('\n'))
  for (const what of ['snapshot?at=0', 'transcript?at=0', 'snapshot', 'journal?branch=main']) {
    const answer = await viewer(`/v1/sessions/${id}/${what}`)
    requireProblem(answer, 'journal_damaged')
  }
  expect((await viewer(`/v1/sessions/${id}/snapshot?at=0`)).json.detail).toContain('unheard_of')
})
