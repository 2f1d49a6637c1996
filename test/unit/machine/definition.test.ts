import aslValidator from 'asl-validator'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { buildDefinition, helperStates, stepFunctionPlaceholder } from '../../../lib/machine/definition.ts'
import { lifecycle, successors } from '../../../lib/session/lifecycle.ts'
import { isWorkerStep, parks, stepSchema } from '../../../lib/session/states.ts'

const functionArn = 'arn:aws:lambda:us-east-1:000000000000:function:x'

const stateSchema = z.object({
  Type: z.string(),
  Next: z.string().optional(),
  Default: z.string().optional(),
  Choices: z
    .array(z.object({ Variable: z.string(), StringEquals: z.string(), Next: z.string() }))
    .default([]),
  Catch: z.array(z.object({ ErrorEquals: z.array(z.string()), Next: z.string() })).default([]),
  Resource: z.string().optional(),
  Parameters: z
    .strictObject({ FunctionName: z.string(), Payload: z.record(z.string(), z.string()) })
    .optional(),
  TimeoutSeconds: z.number().optional(),
  HeartbeatSeconds: z.number().optional(),
})
const definition = buildDefinition(functionArn)
const states = new Map(
  Object.entries(definition.States).map(([name, state]) => [name, stateSchema.parse(state)]),
)
const stateOf = (name: string) => {
  const state = states.get(name)
  if (!state) throw new Error(`the machine has no state ${name}`)
  return state
}
const tasks = [...states].filter(([, { Type }]) => Type === 'Task')
const workerSteps = stepSchema.options.filter(isWorkerStep)
const targets = (name: string): string[] => {
  const { Next, Default, Choices, Catch } = stateOf(name)
  return [Next, Default, ...Choices.map((rule) => rule.Next), ...Catch.map((rule) => rule.Next)].filter(
    (target) => target !== undefined,
  )
}

describe('the machine', () => {
  it('is valid Amazon States Language', () => {
    const { isValid, errorsText } = aslValidator(buildDefinition(functionArn))
    expect(errorsText('\n')).toBe('')
    expect(isValid).toBe(true)
  })

  it('names the function by a placeholder until it is deployed, and by nothing else', () => {
    const deployed = JSON.stringify(buildDefinition()).replaceAll(stepFunctionPlaceholder, functionArn)
    expect(JSON.parse(deployed)).toEqual(definition)
    expect(new Set(tasks.map(([, { Parameters }]) => Parameters?.FunctionName))).toEqual(
      new Set([functionArn]),
    )
  })

  it('has a state for every step', () => {
    for (const step of stepSchema.options) expect(stateOf(step).Type).toBe('Task')
  })

  it('reaches every state from its start, and goes nowhere else', () => {
    const reached = new Set<string>()
    const visit = (name: string): void => {
      if (reached.has(name)) return
      reached.add(name)
      for (const target of targets(name)) visit(target)
    }
    visit(definition.StartAt)
    expect([...reached].sort()).toEqual([...states.keys()].sort())
  })

  it('can end from every state', () => {
    const ends = new Set(
      [...states].filter(([, { Type }]) => /Succeed|Fail/.test(Type)).map(([name]) => name),
    )
    for (;;) {
      const more = [...states.keys()].filter(
        (name) => !ends.has(name) && targets(name).some((to) => ends.has(to)),
      )
      if (more.length === 0) break
      for (const name of more) ends.add(name)
    }
    expect([...ends].sort()).toEqual([...states.keys()].sort())
  })
})

describe('no step waits for ever', () => {
  it.each(tasks)('%s has a time limit', (_name, { TimeoutSeconds }) => {
    expect(TimeoutSeconds).toBeGreaterThan(0)
    expect(TimeoutSeconds).toBeLessThan(definition.TimeoutSeconds)
  })

  it.each(workerSteps)('%s notices a silent worker long before its time limit', (step) => {
    const { HeartbeatSeconds = 0, TimeoutSeconds = 0 } = stateOf(step)
    expect(HeartbeatSeconds).toBeGreaterThan(0)
    expect(HeartbeatSeconds).toBeLessThan(TimeoutSeconds)
  })

  it.each(stepSchema.options)('%s waits for a token exactly when somebody outside answers', (step) => {
    const { Resource, Parameters } = stateOf(step)
    expect(Resource?.endsWith('.waitForTaskToken')).toBe(parks(step))
    expect(Parameters?.Payload['task_token.$']).toBe(parks(step) ? '$$.Task.Token' : undefined)
  })
})

describe('the machine follows the lifecycle', () => {
  const moves = lifecycle.filter(({ next }) => next !== 'same')

  it.each(moves.filter(({ at }) => at !== 'any'))('$trigger leads from $at to $next', ({ at, next }) => {
    expect(targets(stateOf(at).Next ?? '')).toContain(next)
  })

  it.each(moves.filter(({ at }) => at === 'any'))('$trigger leads from every step to $next', ({ next }) => {
    for (const step of stepSchema.options.filter((step) => step !== 'Settle'))
      expect(targets(stateOf(step).Next ?? '')).toContain(next)
  })

  it.each(stepSchema.options.filter((step) => step !== 'Settle'))('%s leads nowhere else', (step) => {
    const choice = stateOf(stateOf(step).Next ?? '')
    expect(choice.Choices.map(({ Next }) => Next)).toEqual(successors(step))
    expect(choice.Choices.every(({ StringEquals, Next }) => StringEquals === Next)).toBe(true)
    expect(choice.Default).toBe(helperStates.resume)
  })

  it('can resume at every step', () => {
    expect(stateOf(helperStates.resume).Choices.map(({ Next }) => Next)).toEqual(stepSchema.options)
  })
})

describe('faults', () => {
  it.each(stepSchema.options.filter((step) => step !== 'Settle'))(
    'whatever goes wrong in %s is recovered',
    (step) => {
      expect(stateOf(step).Catch).toEqual([{ ErrorEquals: ['States.ALL'], Next: helperStates.recover }])
    },
  )

  it('Settle is never left for Recover: it ends the execution', () => {
    expect(targets('Settle')).toEqual([helperStates.ended])
  })
})

describe('the machine carries ids only', () => {
  const allowed = ['step', 'team.$', 'session_id.$', 'execution.$', 'task_token.$', 'error.$', 'cause.$']

  it.each(tasks)('%s is told nothing else', (_name, { Parameters }) => {
    for (const name of Object.keys(Parameters?.Payload ?? { none: '' })) expect(allowed).toContain(name)
  })
})
