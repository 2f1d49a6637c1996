import { ExecutionAlreadyExists, type HistoryEvent } from '@aws-sdk/client-sfn'
import { z } from 'zod'
import type { TaskAnswer } from '../../lib/session/item.ts'
import { type ExecutionStatus, executionInput } from '../../lib/store/machine.ts'
import type { Platform } from '../../lib/store/platform.ts'

const errors = { ErrorEquals: z.array(z.string()) }
type Template = { [member: string]: string | Template }
const template: z.ZodType<Template> = z.record(z.string(), z.union([z.string(), z.lazy(() => template)]))
const common = { Comment: z.string().optional() }
const onward = { Next: z.string().optional(), End: z.literal(true).optional() }

/** The part of the language that our machine is written in; anything else is refused. */
const stateSchema = z.discriminatedUnion('Type', [
  z.strictObject({
    ...{ Type: z.literal('Task'), ...common, ...onward },
    Resource: z.enum(['arn:aws:states:::lambda:invoke', 'arn:aws:states:::lambda:invoke.waitForTaskToken']),
    Parameters: z.strictObject({ FunctionName: z.string(), Payload: template }),
    ResultSelector: template.optional(),
    ResultPath: z
      .string()
      .regex(/^\$\.\w+$/)
      .optional(),
    TimeoutSeconds: z.number().optional(),
    TimeoutSecondsPath: z.string().optional(),
    HeartbeatSeconds: z.number().optional(),
    Retry: z
      .array(
        z.strictObject({
          ...errors,
          IntervalSeconds: z.number().default(1),
          MaxAttempts: z.number().default(3),
          BackoffRate: z.number().default(2),
        }),
      )
      .default([]),
    Catch: z
      .array(z.strictObject({ ...errors, ResultPath: z.string().regex(/^\$\.\w+$/), Next: z.string() }))
      .default([]),
  }),
  z.strictObject({
    ...{ Type: z.literal('Choice'), ...common },
    Choices: z.array(z.strictObject({ Variable: z.string(), StringEquals: z.string(), Next: z.string() })),
    Default: z.string(),
  }),
  z.strictObject({ Type: z.literal('Wait'), ...common, ...onward, SecondsPath: z.string() }),
  z.strictObject({ Type: z.literal('Succeed'), ...common }),
  z.strictObject({
    ...{ Type: z.literal('Fail'), ...common },
    ErrorPath: z.string().optional(),
    CausePath: z.string().optional(),
  }),
])
const definitionSchema = z.strictObject({
  Comment: z.string().optional(),
  StartAt: z.string(),
  TimeoutSeconds: z.number().optional(),
  States: z.record(z.string(), stateSchema),
})
type State = z.infer<typeof stateSchema>
type Task = Extract<State, { Type: 'Task' }>
type Failure = { error: string; cause: string }
type Outcome = { ok: true; output: unknown } | ({ ok: false } & Failure)

/** What an execution waits for: to be run, a function's answer, a token's, or a time. */
type Phase =
  | { kind: 'ready' }
  | { kind: 'invoking' | 'parked'; token: string | null; timeoutAt: number; heartbeatAt: number }
  | { kind: 'done'; outcome: Outcome }
  | { kind: 'sleeping'; until: number; resumes: 'task' | 'next' }

type Execution = {
  name: string
  arn: string
  input: string
  status: ExecutionStatus
  startedAt: number
  state: string
  enteredAt: number
  data: unknown
  phase: Phase
  /** Retries used in this state, by retrier. */
  retries: Map<number, number>
  events: HistoryEvent[]
}

/** An error that a function reports to the machine under a name of its own. */
export class FunctionError extends Error {
  constructor(name: string, message = '') {
    super(message)
    this.name = name
  }
}

const read = (path: string, from: unknown): unknown =>
  path
    .split('.')
    .slice(1)
    .reduce<unknown>((found, member) => Object(found)[member], from)

const matches = ({ ErrorEquals }: { ErrorEquals: string[] }, error: string) =>
  ErrorEquals.includes('States.ALL') || ErrorEquals.includes(error)

const placed = (data: unknown, path: string | undefined, value: unknown): unknown =>
  path === undefined ? value : { ...Object(data), [path.slice(2)]: value }

const failureOf = (error: unknown): Failure => {
  const errorType = error instanceof Error ? error.name : 'Error'
  const errorMessage = error instanceof Error ? error.message : String(error)
  return { error: errorType, cause: JSON.stringify({ errorType, errorMessage }) }
}

/**
 * Step Functions under a test's control: it interprets a definition as the embedded one does, on a clock of the test's
 * and one task at a time, when told to. `machine` is the port that the product uses.
 */
export const createMachineDriver = (options: {
  definition: unknown
  invoke: (payload: unknown) => Promise<unknown>
  now: () => number
}) => {
  const { invoke, now } = options
  const {
    States,
    StartAt,
    TimeoutSeconds = Number.POSITIVE_INFINITY,
  } = definitionSchema.parse(options.definition)
  const executions = new Map<string, Execution>()
  const arnOf = (name: string) => `arn:aws:states:us-east-1:000000000000:execution:machine:${name}`
  let tokens = 0

  const stateOf = (name: string): State => {
    const state = States[name]
    if (!state) throw new Error(`the machine has no state ${name}`)
    return state
  }
  const note = (execution: Execution, type: NonNullable<HistoryEvent['type']>, more: object = {}) =>
    execution.events.push({ id: execution.events.length + 1, timestamp: new Date(now()), type, ...more })

  const end = (
    execution: Execution,
    status: 'SUCCEEDED' | 'FAILED' | 'TIMED_OUT' | 'ABORTED',
    why?: Failure,
  ) => {
    const types = {
      SUCCEEDED: 'ExecutionSucceeded',
      FAILED: 'ExecutionFailed',
      TIMED_OUT: 'ExecutionTimedOut',
      ABORTED: 'ExecutionAborted',
    } as const
    execution.status = status
    note(execution, types[status], status === 'FAILED' ? { executionFailedEventDetails: why } : {})
  }

  const enter = (execution: Execution, name: string): void => {
    const state = stateOf(name)
    Object.assign(execution, { state: name, enteredAt: now(), phase: { kind: 'ready' }, retries: new Map() })
    note(execution, `${state.Type}StateEntered`, { stateEnteredEventDetails: { name } })
    switch (state.Type) {
      case 'Task':
        return
      case 'Choice': {
        const taken = state.Choices.find(
          ({ Variable, StringEquals }) => read(Variable, execution.data) === StringEquals,
        )
        enter(execution, taken?.Next ?? state.Default)
        return
      }
      case 'Wait': {
        const until = now() + Number(read(state.SecondsPath, execution.data)) * 1000
        execution.phase = { kind: 'sleeping', until, resumes: 'next' }
        if (until <= now()) leave(execution)
        return
      }
      case 'Succeed':
        end(execution, 'SUCCEEDED')
        return
      case 'Fail': {
        const text = (path: string | undefined) =>
          path === undefined ? '' : String(read(path, execution.data))
        end(execution, 'FAILED', { error: text(state.ErrorPath), cause: text(state.CausePath) })
      }
    }
  }

  const exit = (execution: Execution): void => {
    const { Type } = stateOf(execution.state)
    const stateExitedEventDetails = { name: execution.state, output: JSON.stringify(execution.data) }
    if (Type !== 'Fail') note(execution, `${Type}StateExited`, { stateExitedEventDetails })
  }

  const leave = (execution: Execution): void => {
    const state = stateOf(execution.state)
    exit(execution)
    if ('Next' in state && state.Next !== undefined) enter(execution, state.Next)
    else end(execution, 'SUCCEEDED')
  }

  /** A template with its paths followed: `$.` into the data, `$$.` into the context. */
  const filled = (form: Template, from: unknown, context: object): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(form).map(([key, value]) => {
        if (typeof value !== 'string') return [key, filled(value, from, context)]
        if (!key.endsWith('.$')) return [key, value]
        return [key.slice(0, -2), value.startsWith('$$') ? read(value.slice(1), context) : read(value, from)]
      }),
    )
  const contextOf = ({ arn, input, enteredAt }: Execution, token: string | null) => ({
    Execution: { Id: arn, Input: JSON.parse(input) },
    State: { EnteredTime: new Date(enteredAt).toISOString() },
    Task: { Token: token },
  })

  const fail = (execution: Execution, task: Task, { error, cause }: Failure): void => {
    const timedOut = error === 'States.Timeout' || error === 'States.HeartbeatTimeout'
    note(execution, timedOut ? 'TaskTimedOut' : 'TaskFailed', { taskFailedEventDetails: { error, cause } })
    const at = task.Retry.findIndex((retrier) => matches(retrier, error))
    const retrier = task.Retry[at]
    const used = execution.retries.get(at) ?? 0
    if (retrier && used < retrier.MaxAttempts) {
      execution.retries.set(at, used + 1)
      const until = now() + retrier.IntervalSeconds * retrier.BackoffRate ** used * 1000
      execution.phase = { kind: 'sleeping', until, resumes: 'task' }
      return
    }
    const catcher = task.Catch.find((candidate) => matches(candidate, error))
    if (!catcher) {
      end(execution, 'FAILED', { error, cause })
      return
    }
    execution.data = placed(execution.data, catcher.ResultPath, { Error: error, Cause: cause })
    exit(execution)
    enter(execution, catcher.Next)
  }

  const finish = (execution: Execution, task: Task, outcome: Outcome): void => {
    if (!outcome.ok) {
      fail(execution, task, outcome)
      return
    }
    const selected = task.ResultSelector
      ? filled(task.ResultSelector, outcome.output, contextOf(execution, null))
      : outcome.output
    execution.data = placed(execution.data, task.ResultPath, selected)
    leave(execution)
  }

  const after = (seconds: unknown): number =>
    seconds === undefined ? Number.POSITIVE_INFINITY : now() + Number(seconds) * 1000

  const run = async (execution: Execution, task: Task): Promise<void> => {
    const parks = task.Resource.endsWith('.waitForTaskToken')
    const token = parks ? `token-${tokens++}` : null
    const limit =
      task.TimeoutSecondsPath === undefined
        ? task.TimeoutSeconds
        : read(task.TimeoutSecondsPath, execution.data)
    const waits = { token, timeoutAt: after(limit), heartbeatAt: after(task.HeartbeatSeconds) }
    const phase: Phase = { kind: 'invoking', ...waits }
    execution.phase = phase
    const payload = filled(task.Parameters.Payload, execution.data, contextOf(execution, token))
    // An answer by the token, or a stop, may come while the function still runs; what it says then is too late.
    const stillWaits = () => execution.status === 'RUNNING' && execution.phase === phase
    try {
      const Payload = await invoke(payload)
      if (!stillWaits()) return
      if (parks) phase.kind = 'parked'
      else execution.phase = { kind: 'done', outcome: { ok: true, output: { Payload, StatusCode: 200 } } }
    } catch (error) {
      if (stillWaits()) execution.phase = { kind: 'done', outcome: { ok: false, ...failureOf(error) } }
    }
  }

  /** When an execution does something by itself; now, for one that is ready. */
  const timeOf = ({ status, phase, startedAt }: Execution): number => {
    if (status !== 'RUNNING') return Number.POSITIVE_INFINITY
    const over = startedAt + TimeoutSeconds * 1000
    switch (phase.kind) {
      case 'ready':
      case 'done':
        return now()
      case 'sleeping':
        return Math.min(over, phase.until)
      case 'parked':
        return Math.min(over, phase.timeoutAt, phase.heartbeatAt)
      case 'invoking':
        return Number.POSITIVE_INFINITY
    }
  }
  const all = () => [...executions.values()]

  /** Runs one task of an execution, or what an answer or a time leads to. */
  const step = async (name: string): Promise<void> => {
    const execution = executions.get(name)
    if (!execution || timeOf(execution) > now()) return
    if (now() >= execution.startedAt + TimeoutSeconds * 1000) return end(execution, 'TIMED_OUT')
    const { phase } = execution
    const task = stateOf(execution.state)
    if (phase.kind === 'sleeping' && phase.resumes === 'next') return leave(execution)
    if (task.Type !== 'Task') throw new Error(`nothing to do in ${execution.state}`)
    if (phase.kind === 'parked') {
      const error = phase.timeoutAt <= now() ? 'States.Timeout' : 'States.HeartbeatTimeout'
      return fail(execution, task, { error, cause: '' })
    }
    if (phase.kind === 'done') return finish(execution, task, phase.outcome)
    await run(execution, task)
    // A function's own answer leads on at once; one by a token is for the test to let through.
    const ran = execution.phase
    if (ran.kind === 'done' && execution.status === 'RUNNING') finish(execution, task, ran.outcome)
  }

  const holderOf = (token: string) =>
    all().find(
      ({ status, phase }) =>
        status === 'RUNNING' &&
        (phase.kind === 'parked' || phase.kind === 'invoking') &&
        phase.token === token,
    )
  const byArn = (arn: string) => all().find((execution) => execution.arn === arn)
  const started = (execution: Execution) => new Date(execution.startedAt).toISOString()

  const machine: Platform['machine'] = {
    executionArn: arnOf,
    start: async (session) => {
      const name = `${session.id}-${session.attempt}`
      const input = executionInput(session)
      const there = executions.get(name)
      if (there && there.input !== input) throw new ExecutionAlreadyExists({ message: name, $metadata: {} })
      if (there) return there.arn
      const execution: Execution = {
        ...{ name, arn: arnOf(name), input, status: 'RUNNING', startedAt: now(), enteredAt: now() },
        ...{ state: StartAt, data: JSON.parse(input), phase: { kind: 'ready' }, retries: new Map() },
        events: [],
      }
      executions.set(name, execution)
      enter(execution, StartAt)
      return execution.arn
    },
    answer: async (answer: TaskAnswer) => {
      const execution = holderOf(answer.token)
      if (!execution) return false
      execution.phase = {
        kind: 'done',
        outcome: answer.ok
          ? { ok: true, output: answer.output }
          : { ok: false, error: answer.error, cause: answer.cause },
      }
      return true
    },
    heartbeat: async (token) => {
      const execution = holderOf(token)
      if (!execution) return false
      const state = stateOf(execution.state)
      if (state.Type === 'Task')
        Object.assign(execution.phase, { heartbeatAt: after(state.HeartbeatSeconds) })
      return true
    },
    status: async (arn) => byArn(arn)?.status ?? 'MISSING',
    running: async (limit) => ({
      executions: all()
        .filter(({ status }) => status === 'RUNNING')
        .reverse()
        .slice(0, limit)
        .map((execution) => ({ arn: execution.arn, name: execution.name, started_at: started(execution) })),
      next: null,
    }),
    inputOf: async (arn) => {
      const execution = byArn(arn)
      return execution ? JSON.parse(execution.input) : null
    },
    stop: async (arn, error, cause) => {
      const execution = byArn(arn)
      if (execution?.status === 'RUNNING') end(execution, 'ABORTED', { error, cause })
    },
    history: async (arn) => byArn(arn)?.events ?? [],
  }

  return {
    machine,
    step,
    /** Names of the executions that have something to do now. */
    ready: (): string[] => all().flatMap((one) => (timeOf(one) <= now() ? [one.name] : [])),
    /** When the next of them has something to do; infinite when none ever has. */
    nextAt: (): number => Math.min(Number.POSITIVE_INFINITY, ...all().map(timeOf)),
    /** Names of the executions that run. */
    live: (): string[] => all().flatMap(({ status, name }) => (status === 'RUNNING' ? [name] : [])),
  }
}
