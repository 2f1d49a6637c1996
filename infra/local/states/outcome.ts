import { z } from 'zod'
import type { HistoryEvent } from './history-events.ts'

const started = z.object({ executionStartedEventDetails: z.object({ input: z.string() }) })
const succeeded = z.object({ executionSucceededEventDetails: z.object({ output: z.string() }) })
const stated = z.object({ error: z.string().optional(), cause: z.string().optional() })
const failed = z.union([
  z.object({ executionFailedEventDetails: stated }).transform((event) => event.executionFailedEventDetails),
  z
    .object({ executionTimedOutEventDetails: stated })
    .transform((event) => event.executionTimedOutEventDetails),
  z.object({ executionAbortedEventDetails: stated }).transform((event) => event.executionAbortedEventDetails),
])
const entered = z.object({ stateEnteredEventDetails: z.object({ name: z.string(), input: z.string() }) })
const included = { included: true }

/** The execution's input as JSON text; `undefined` when the history does not begin with it. */
export const inputOf = (history: readonly HistoryEvent[]): string | undefined =>
  started.safeParse(history[0]).data?.executionStartedEventDetails.input

/** The input, as JSON text, of the state that was entered last; `undefined` unless that is the state of this name. */
export function stateInputOf(history: readonly HistoryEvent[], name: string): string | undefined {
  const last = history.findLast((event) => event.type.endsWith('StateEntered'))
  const details = entered.safeParse(last).data?.stateEnteredEventDetails
  return details?.name === name ? details.input : undefined
}

/** What DescribeExecution tells of an execution's data: its input and, when it has ended, its output or failure. */
export function outcomeOf(history: readonly HistoryEvent[], withData: boolean): object {
  if (!withData) return { inputDetails: { included: false }, outputDetails: { included: false } }
  const input = inputOf(history)
  const last = history.at(-1)
  const output = succeeded.safeParse(last).data?.executionSucceededEventDetails.output
  return {
    ...(input === undefined ? {} : { input, inputDetails: included }),
    ...(output === undefined ? {} : { output, outputDetails: included }),
    ...failed.safeParse(last).data,
  }
}
