import { expect } from 'vitest'
import { z } from 'zod'
import { errorCodes } from '../../../lib/errors.ts'
import { type Answer, startTestStack, type TestStack } from '../../support/stack.ts'

export type Call = Parameters<TestStack['call']>[1]
const person = { kind: 'person', team: 'local' } as const

/** A stack whose one slot is taken, so that the sessions of a test wait in the queue and cost nothing; and its tokens. */
export const startQuietStack = async () => {
  const stack = await startTestStack({ concurrency: 1 })
  await stack.platform.admission.acquire('local', 'ses_nobody', 1)
  const tokens = {
    viewer: await stack.tokenFor({ ...person, principal: 'viewer', role: 'viewer' }),
    operator: await stack.tokenFor({ ...person, principal: 'operator', role: 'operator' }),
    approver: await stack.tokenFor({ ...person, principal: 'approver', role: 'approver' }),
    stranger: await stack.tokenFor({ ...person, team: 'other', principal: 'eve', role: 'admin' }),
  }
  const post = (path: string, body: unknown, more: Call = {}) => stack.call(path, { body, ...more })
  const create = async (more: Record<string, unknown> = {}, how: Call = {}) => {
    const answer = await post('/v1/sessions', stack.start(more), how)
    expect(answer.status, answer.text).toBe(201)
    return z.object({ id: z.string(), version: z.number() }).loose().parse(answer.json)
  }
  return { ...stack, tokens, post, create }
}
export type QuietStack = Awaited<ReturnType<typeof startQuietStack>>

/** A problem answer in its whole form (RFC 9457 and API.md). */
export const requireProblem = (answer: Answer, code: keyof typeof errorCodes): void => {
  expect(answer.json, answer.text).toMatchObject({ code })
  expect(answer.status).toBe(errorCodes[code].status)
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  expect(answer.json).toMatchObject({
    ...{ status: answer.status, title: errorCodes[code].title, type: `urn:gatehouse:problem:${code}` },
    request_id: answer.headers.get('x-request-id'),
    detail: expect.stringMatching(/\S/),
  })
  expect(answer.text).not.toMatch(/node_modules|\bat .*\.ts:|ConditionalCheck|Dynamo|ZodError/)
}

/** Where a request did not validate. */
export const paths = (answer: Answer): string[] =>
  z
    .array(z.object({ path: z.string(), message: z.string() }))
    .parse(answer.json.errors)
    .map(({ path }) => path)
