import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sessionSchema } from '../../functions/api/schemas.ts'
import type { Command, Result } from '../../lib/session/protocol.ts'
import { makeRepository, temporaryFolder } from '../repositories.ts'
import { requirePrefixes } from '../support/prefixes.ts'
import { startScriptedStack } from '../support/scripted-stack.ts'
import { aCheckpoint, aContract, aResult, sha } from '../support/sessions.ts'

const iterations = 50

/** Work that stays red, with a long name and much to say in each result. */
const script = ({ step, session }: Command): Result => {
  const red = [aResult({ verdict: 'failed', output_tail: 'x'.repeat(4000) })]
  switch (step) {
    case 'Prepare':
      return { outcome: step, base: sha('a'), start_commit: sha('a'), tree: sha('b'), warnings: [] }
    case 'Draft':
      return {
        ...{ outcome: step, contract: session.contract ?? aContract(), provenance: 'operator_supplied' },
        ...{ sources: [], warnings: [] },
      }
    case 'Baseline':
      return { outcome: step, results: red, captures: {} }
    case 'Code':
      return {
        ...{ outcome: step, status: 'finished', exit_code: 0, signal: null, duration_ms: 1, output_bytes: 0 },
        ...{ artifact: null, survivors: 0, changed: true, touched: true, checkpoint: aCheckpoint() },
        ...{ report: null, nomination: null, guidance_applied: 0 },
        usage: { input_tokens: null, output_tokens: null, cost_usd: null, complete: false },
      }
    case 'Validate':
      return { outcome: step, results: red, tree_edited: false }
    default:
      return { outcome: 'Preflight', problems: [] }
  }
}

let stack: Awaited<ReturnType<typeof startScriptedStack>>
beforeAll(async () => {
  stack = await startScriptedStack(temporaryFolder(), script)
})
afterAll(() => stack.close())

const read = async (id: string) => sessionSchema.parse((await stack.call(`/v1/sessions/${id}`)).body)

/** Waits until a session stands at another gate than before, or has ended. */
const nextGate = async (id: string, before: string | undefined) => {
  for (let tries = 0; tries < 1000; tries++) {
    const session = await read(id)
    if (session.failure_kind !== null || (session.gate && session.gate.id !== before)) return session
    await sleep(20)
  }
  throw new Error('the session came to no gate')
}

test(`a session of ${iterations} iterations stays far below the limits of its state machine`, async () => {
  const started = await stack.call('/v1/sessions', {
    ...{ repo: makeRepository().directory, intent: 'Never done', engine_command: 'true', mode: 'auto' },
    ...{ max_iterations: iterations, contract: aContract() },
  })
  const { id } = sessionSchema.parse(started.body)
  let session = await nextGate(id, undefined)
  while (session.gate) {
    const { id: gate_id } = session.gate
    const answer = await stack.call(`/v1/sessions/${id}/gate`, { gate_id, action: 'loop_back' })
    expect(answer.status).toBe(200)
    session = await nextGate(id, gate_id)
  }
  expect(session).toMatchObject({
    state: 'failed',
    failure_kind: 'error',
    iterations,
    total_failures: iterations,
  })

  const arn = stack.platform.machine.executionArn(`${id}-1`)
  const events = await stack.platform.machine.history(arn)
  console.log(`${events.length} history events for ${iterations} iterations`)
  expect(events.length).toBeLessThan(1500)
  const payloads = events.flatMap((event) => [
    event.stateEnteredEventDetails?.input,
    event.stateExitedEventDetails?.output,
    event.taskScheduledEventDetails?.parameters,
    event.taskSucceededEventDetails?.output,
  ])
  const largest = Math.max(...payloads.map((payload) => Buffer.byteLength(payload ?? '')))
  console.log(`the largest payload holds ${largest} bytes`)
  expect(largest).toBeLessThan(2048)
  const verified = await stack.call(`/v1/sessions/${id}/journal/verify`)
  expect(verified.body).toMatchObject({ ok: true })
  await requirePrefixes(stack.platform, await stack.platform.sessions.require({ team: 'team', id }))
}, 180_000)
