import aslValidator from 'asl-validator'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../lib/ids.ts'
import { limits } from '../../../lib/limits.ts'
import { buildDefinition, helperStates, stepFunctionPlaceholder } from '../../../lib/machine/definition.ts'
import { failTask, stepOutput } from '../../../lib/session/advance.ts'
import { lifecycle, successors, type Transition } from '../../../lib/session/lifecycle.ts'
import { isGateStep, isWorkerStep, parks, type Step, stepSchema } from '../../../lib/session/states.ts'
import { sessionAt } from '../../support/sessions.ts'

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
  ResultSelector: z.record(z.string(), z.json()).optional(),
  ResultPath: z.string().optional(),
  Parameters: z
    .strictObject({ FunctionName: z.string(), Payload: z.record(z.string(), z.string()) })
    .optional(),
  TimeoutSeconds: z.number().optional(),
  TimeoutSecondsPath: z.string().optional(),
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
  const timed = tasks.filter(([name]) => name !== 'RateLimit')

  it.each(timed)('%s has a time limit', (_name, { TimeoutSeconds }) => {
    expect(TimeoutSeconds).toBeGreaterThan(0)
    expect(TimeoutSeconds).toBeLessThan(definition.TimeoutSeconds)
  })

  it('RateLimit waits until the limit lifts, as the step before it says, and so does whatever leads there', () => {
    const { TimeoutSecondsPath, TimeoutSeconds } = stateOf('RateLimit')
    expect({ TimeoutSecondsPath, TimeoutSeconds }).toEqual({
      ...{ TimeoutSecondsPath: '$.last.wait', TimeoutSeconds: undefined },
    })
    for (const [name, { ResultPath, ResultSelector, Resource }] of tasks) {
      if (name === helperStates.recover) continue
      expect(ResultPath, name).toBe('$.last')
      if (Resource?.endsWith('.waitForTaskToken')) expect(ResultSelector, name).toBeUndefined()
      else
        expect(ResultSelector, name).toMatchObject({ 'next.$': '$.Payload.next', 'wait.$': '$.Payload.wait' })
    }
    // Recover makes the state anew, so that what a fault said goes no further.
    const { ResultPath, ResultSelector } = stateOf(helperStates.recover)
    expect(ResultPath).toBeUndefined()
    expect(Object.keys(ResultSelector ?? {}).sort()).toEqual(['attempt.$', 'last', 'session_id.$', 'team.$'])
    const reset_at = new Date(limits.rateLimitWaitMs).toISOString()
    expect(stepOutput('RateLimit', '', { reset_at, now: 0 }).wait).toBeLessThan(definition.TimeoutSeconds)
  })

  it.each(stepSchema.options.filter(isGateStep))('%s waits as long as its gate has', (step) => {
    expect(stateOf(step).TimeoutSeconds).toBe(limits.gateMs / 1000)
  })

  it.each(workerSteps)('%s notices a silent worker long before its time limit', (step) => {
    const { HeartbeatSeconds = 0, TimeoutSeconds = 0 } = stateOf(step)
    expect(HeartbeatSeconds).toBeGreaterThan(0)
    expect(HeartbeatSeconds).toBeLessThan(TimeoutSeconds)
    expect(TimeoutSeconds).toBeGreaterThan(limits.wallSecs.max)
  })

  it.each(stepSchema.options)('%s waits for a token exactly when somebody outside answers', (step) => {
    const { Resource, Parameters } = stateOf(step)
    expect(Resource?.endsWith('.waitForTaskToken')).toBe(parks(step))
    expect(Parameters?.Payload['task_token.$']).toBe(parks(step) ? '$$.Task.Token' : undefined)
  })
})

/** The states that a step can go on to when it ends well: its choice's, or the one next to it. */
const onward = (step: Step): string[] => {
  const { Next = '' } = stateOf(step)
  return stepSchema.safeParse(Next).success ? [Next] : targets(Next)
}
/** Steps of an iteration, which follow each other whatever the session says; the next one sees where that is. */
const direct = { Code: 'Validate', Validate: 'Decide' } as const
const isDirect = (step: Step): step is keyof typeof direct => step in direct
const choosing = stepSchema.options.filter((step) => step !== 'Settle' && !isDirect(step))

describe('the machine follows the lifecycle', () => {
  const rows: readonly Transition[] = lifecycle
  const moves = rows.filter(({ next }) => next !== 'same')

  it('goes through an iteration without a choice', () => {
    expect(stateOf('Code').Next).toBe('Validate')
    expect(stateOf('Validate').Next).toBe('Decide')
    expect(stateOf('Decide').Next).toBe('After Decide')
  })

  it.each(
    moves.flatMap(({ trigger, at, next }) =>
      at === 'any' || next === 'held' || isDirect(at) ? [] : [{ trigger, at, next }],
    ),
  )('$trigger leads from $at to $next', ({ at, next }) => {
    expect(onward(at)).toContain(next)
  })

  it.each(moves.filter(({ at }) => at === 'any'))('$trigger leads from every step to $next', ({ next }) => {
    for (const step of choosing)
      if (step !== 'Rest' || next !== 'Rest') expect(onward(step), step).toContain(next)
  })

  it.each(choosing)('%s leads nowhere else', (step) => {
    const choice = stateOf(stateOf(step).Next ?? '')
    // What comes after rest is another execution, which starts where the session is.
    const expected = step === 'Rest' ? ['Settle'] : successors(step)
    expect(choice.Choices.map(({ Next }) => Next)).toEqual(expected)
    expect(choice.Choices.every(({ StringEquals, Next }) => StringEquals === Next)).toBe(true)
    expect(choice.Default).toBe(step === 'Rest' ? helperStates.stopped : helperStates.resume)
  })

  it('leaves an iteration by the choice after it, wherever the session went meanwhile', () => {
    for (const next of stepSchema.options)
      expect([...onward('Decide'), ...targets(helperStates.resume)]).toContain(next)
  })

  it('ends an execution at rest as succeeded, for nothing failed', () => {
    expect(stateOf(helperStates.stopped).Type).toBe('Succeed')
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

  it('Recover goes back to where the session is, after a pause that grows', () => {
    expect(targets(helperStates.recover)).toEqual([helperStates.backOff])
    expect(targets(helperStates.backOff)).toEqual([helperStates.resume])
  })
})

describe('the machine carries ids only', () => {
  const allowed = [
    ...[
      'step',
      'team.$',
      'session_id.$',
      'execution.$',
      'task_token.$',
      'error.$',
      'cause.$',
      'at.$',
      'away.$',
    ],
  ]

  it.each(tasks)('%s is told nothing else', (_name, { Parameters }) => {
    for (const name of Object.keys(Parameters?.Payload ?? { none: '' })) expect(allowed).toContain(name)
  })

  /** The largest state that a session can have between two steps: what the machine was started with and the last answers. */
  const largest = (text: string) => {
    const answer = stepOutput('PreflightGate', text.repeat(10_000), {
      ...{ reset_at: new Date(limits.rateLimitWaitMs).toISOString(), now: 0 },
    })
    return JSON.stringify({ team: 'x'.repeat(64), session_id: newId('ses'), last: answer })
  }

  it.each(['x', '"', '\n', '\u0001', '\u20ac', '\u{1f600}', '\ud800'])(
    'so that no state is larger than it may be, with notes of %j',
    (text) => {
      expect(Buffer.byteLength(largest(text))).toBeLessThan(limits.stateOutput)
    },
  )

  it.each(['x', '\u0001', '\u{1f600}'])('a fault that we tell of is as small, with causes of %j', (text) => {
    const item = sessionAt('running', 'Code')
    const parked = { ...item, runtime: { ...item.runtime, task: { step: 'Code' as const, token: 't' } } }
    const [answer] = failTask(parked, 'WorkerFault', text.repeat(10_000))
    expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThan(limits.stateOutput)
  })
})
