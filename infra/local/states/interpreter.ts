import { StateMachine } from 'aws-local-stepfunctions'
import { z } from 'zod'
import { ownContext } from './context-paths.ts'
import type { PreparedMachine, TaskSettings } from './definition-preparation.ts'

export const json = z.json()
export type Json = z.output<typeof json>

/** What the interpreter tells of its run, in order. */
export type InterpreterEvent =
  ReturnType<StateMachine['run']>['eventLogs'] extends AsyncGenerator<infer Event> ? Event : never

/** One way through a machine. */
export interface Course {
  machine: PreparedMachine
  /** The state that it starts in, and that state's input. */
  startAt: string
  input: Json
  /** The `$$` object. */
  context: object
  /** Called when a state is entered, before the context object is read for it: the state, `undefined` for none. */
  enter(name: string): object | undefined
  /** Called for each attempt at a task; must not throw in its own turn, which would escape the interpreter. */
  perform(settings: TaskSettings, payload: Json): Promise<Json>
}

/** Has the interpreter go through a machine until it ends or is stopped. */
export function interpret({ machine, startAt, input, context, enter, perform }: Course): {
  events: AsyncGenerator<InterpreterEvent>
  stop(): void
} {
  const States = new Proxy(machine.definition.States, {
    get: (states, name) => (typeof name === 'string' ? enter(name) : Reflect.get(states, name)),
  })
  const interpreter = new StateMachine(
    { StartAt: startAt, States },
    { validationOptions: { noValidate: true } },
  )
  const handlers = [...machine.tasks].map(
    ([name, settings]) => [name, (payload: Json) => perform(settings, payload)] as const,
  )
  const { abort, eventLogs, result } = interpreter.run(input, {
    context: { [ownContext]: context },
    noThrowOnAbort: true,
    overrides: { taskResourceLocalHandlers: Object.fromEntries(handlers) },
  })
  result.catch(() => {})
  return { events: eventLogs, stop: abort }
}
