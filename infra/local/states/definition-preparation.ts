import type { StateMachineDefinition } from 'aws-local-stepfunctions'
import { readingOwnContext } from './context-paths.ts'
import { isInterpretable, type SupportedDefinition } from './definition-support.ts'
import type { TaskResource } from './history-events.ts'
import { longestWaitSeconds } from './limits.ts'
import type { Retrier } from './retriers.ts'

/** What a Task state says about its attempts; a path is read from the state's input when the attempt starts. */
export interface TaskSettings {
  resource: TaskResource
  functionName: string
  timeout: Seconds
  heartbeat: Seconds
  /** Whether a catcher or retrier names `States.DataLimitExceeded`, which wildcards don't match. */
  handlesDataLimit: boolean
  /** As the interpreter is given them. */
  retriers: readonly Retrier[]
}
/** Where a Wait state's length comes from, when its input says it. */
export interface WaitSettings {
  secondsPath: string | undefined
  timestampPath: string | undefined
}
export type Seconds = number | { path: string } | undefined

/** A machine as the interpreter is given it, and what is done outside of it. */
export interface PreparedMachine {
  definition: StateMachineDefinition
  /** The definition's states as they are handed to it one by one. */
  states: Map<string, object>
  /** The definition's own text, as DescribeStateMachine answers it. */
  text: string
  timeoutSeconds: number | undefined
  tasks: Map<string, TaskSettings>
  waits: Map<string, WaitSettings>
  /** Names of the Fail states that state no error, whose failures have none. */
  namelessFailures: Set<string>
}

/**
 * Takes time-outs and heartbeats out of the interpreter's hands (it knows no heartbeat, and its timer fires at once
 * when it is set beyond 24.8 days), lets `States.Timeout` match a missed heartbeat, and spells `ResultPath: "$"` as
 * the default that it is.
 */
export function prepareMachine(source: object, read: SupportedDefinition): PreparedMachine {
  const states = Object.entries(read.States)
  const definition: object = {
    StartAt: read.StartAt,
    States: Object.fromEntries(states.map(([name, state]) => [name, interpreted(state)])),
  }
  if (!isInterpretable(definition)) throw new Error('a supported definition became an unsupported one')
  return {
    definition,
    states: new Map(
      Object.entries(definition.States).map(([name, state]) => [name, readingOwnContext(state)]),
    ),
    text: JSON.stringify(source),
    timeoutSeconds: read.TimeoutSeconds,
    tasks: new Map(
      states.flatMap(([name, state]) =>
        state.Type === 'Task' ? [[name, settingsOf(state, definition.States[name])] as const] : [],
      ),
    ),
    waits: new Map(
      states.flatMap(([name, state]) =>
        state.Type === 'Wait'
          ? [[name, { secondsPath: state.SecondsPath, timestampPath: state.TimestampPath }] as const]
          : [],
      ),
    ),
    namelessFailures: new Set(
      states.flatMap(([name, state]) =>
        state.Type === 'Fail' && state.Error === undefined && state.ErrorPath === undefined ? [name] : [],
      ),
    ),
  }
}

type State = SupportedDefinition['States'][string]
type Task = Extract<State, { Type: 'Task' }>
type Handler = { ErrorEquals: string[]; ResultPath?: string | null | undefined }

function interpreted(state: State): object {
  const plain = withDefaultResultPath(state)
  if (state.Type !== 'Task') return plain
  const { TimeoutSecondsPath, HeartbeatSeconds, HeartbeatSecondsPath, ...task } = state
  return {
    ...withDefaultResultPath(task),
    TimeoutSeconds: longestWaitSeconds,
    ...(task.Retry ? { Retry: task.Retry.map(matchingMissedHeartbeats) } : {}),
    ...(task.Catch ? { Catch: task.Catch.map(matchingMissedHeartbeats).map(withDefaultResultPath) } : {}),
  }
}

function withDefaultResultPath<T extends object>(part: T): T {
  return 'ResultPath' in part && part.ResultPath === '$' ? { ...part, ResultPath: undefined } : part
}

function matchingMissedHeartbeats<T extends Handler>(handler: T): T {
  return handler.ErrorEquals.includes('States.Timeout')
    ? { ...handler, ErrorEquals: [...handler.ErrorEquals, 'States.HeartbeatTimeout'] }
    : handler
}

function settingsOf(task: Task, given: StateMachineDefinition['States'][string] | undefined): TaskSettings {
  const handlers: Handler[] = [...(task.Retry ?? []), ...(task.Catch ?? [])]
  return {
    resource: task.Resource.endsWith('.waitForTaskToken') ? 'invoke.waitForTaskToken' : 'invoke',
    functionName: task.Parameters.FunctionName,
    timeout: secondsOf(task.TimeoutSeconds, task.TimeoutSecondsPath),
    heartbeat: secondsOf(task.HeartbeatSeconds, task.HeartbeatSecondsPath),
    retriers: given?.Type === 'Task' ? (given.Retry ?? []) : [],
    handlesDataLimit: handlers.some((handler) => handler.ErrorEquals.includes('States.DataLimitExceeded')),
  }
}

const secondsOf = (fixed: number | undefined, path: string | undefined): Seconds =>
  fixed ?? (path === undefined ? undefined : { path })
