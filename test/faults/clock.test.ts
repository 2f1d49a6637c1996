import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { sessionSchema } from '../../functions/api/schemas.ts'
import { createStepHandler } from '../../functions/steps/handler.ts'
import { limits } from '../../lib/limits.ts'
import { makeRepository, temporaryFolder } from '../repositories.ts'
import { quickWork } from '../support/quick-work.ts'
import { startScriptedStack } from '../support/scripted-stack.ts'
import { aContract } from '../support/sessions.ts'
import { until } from './kept.ts'

/** Told of each command before it is answered. */
let onCommand: () => void = () => {}
let stack: Awaited<ReturnType<typeof startScriptedStack>>
beforeAll(async () => {
  stack = await startScriptedStack(temporaryFolder(), (command) => {
    onCommand()
    return quickWork(command, 'failed')
  })
})
afterAll(() => stack.close())
afterEach(() => {
  onCommand = () => {}
  vi.useRealTimers()
})

const start = async (): Promise<string> => {
  const { body } = await stack.call('/v1/sessions', {
    ...{ repo: makeRepository().directory, intent: 'Never done', engine_command: 'true', mode: 'auto' },
    contract: aContract(),
  })
  return sessionSchema.parse(body).id
}
const itemOf = (id: string) => stack.platform.sessions.require({ team: 'team', id })
const historyOf = (id: string) =>
  stack.platform.machine.history(stack.platform.machine.executionArn(`${id}-1`))
const atGate = (id: string) =>
  until('the session asks a person', async () => {
    const { document, runtime } = await itemOf(id)
    return runtime.task?.step === 'ValidateGate' ? document : null
  })

test('a clock that goes back by half a minute at every command changes nothing of a session’s way', async () => {
  const straight = await start()
  await atGate(straight)
  const usual = (await historyOf(straight)).length

  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
  onCommand = () => void vi.setSystemTime(Date.now() - 30_000)
  const id = await start()
  const { iterations, infra_failures } = await atGate(id)
  expect({ iterations, infra_failures }).toEqual({ iterations: 3, infra_failures: 0 })
  // A callback that comes before its invocation returned leaves out one event.
  expect(Math.abs((await historyOf(id)).length - usual)).toBeLessThan(40)
  expect((await stack.call(`/v1/sessions/${id}/journal/verify`)).body).toMatchObject({ ok: true })
})

test('a machine that is sent from step to step comes to a fault with pauses and an end, not to a spin', async () => {
  const id = await start()
  await atGate(id)
  const item = await itemOf(id)
  const handle = createStepHandler(stack.platform)
  const event = {
    ...{ step: 'Decide', team: 'team', session_id: id },
    execution: stack.platform.machine.executionArn(`${id}-1`),
  }
  const at = item.journal_head.sequence
  expect(await handle({ ...event, at, away: 0 })).toMatchObject({ next: 'ValidateGate', away: 1 })
  await expect(handle({ ...event, at, away: limits.sentAway })).rejects.toThrow(/had nothing to do/)
  expect((await itemOf(id)).document).toEqual(item.document)
  const fault = { ...event, step: 'Recover', at, error: 'StepFault', cause: 'x' }
  expect(await handle(fault)).toMatchObject({ next: 'ValidateGate', away: 0 })
  expect((await itemOf(id)).document.infra_failures).toBe(1)
  // Told of it again, it is known.
  await handle(fault)
  expect((await itemOf(id)).document.infra_failures).toBe(1)
})
