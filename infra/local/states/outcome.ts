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
const included = { included: true }

/** What DescribeExecution tells of an execution's data: its input and, when it has ended, its output or failure. */
export function outcomeOf(history: readonly HistoryEvent[], withData: boolean): object {
  if (!withData) return { inputDetails: { included: false }, outputDetails: { included: false } }
  const first = started.safeParse(history[0]).data
  const last = history.at(-1)
  const output = succeeded.safeParse(last).data?.executionSucceededEventDetails.output
  return {
    ...(first ? { input: first.executionStartedEventDetails.input, inputDetails: included } : {}),
    ...(output === undefined ? {} : { output, outputDetails: included }),
    ...failed.safeParse(last).data,
  }
}
