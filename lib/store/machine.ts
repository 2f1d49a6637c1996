import { isDeepStrictEqual } from 'node:util'
import {
  DescribeExecutionCommand,
  ExecutionAlreadyExists,
  ExecutionDoesNotExist,
  GetExecutionHistoryCommand,
  type HistoryEvent,
  InvalidToken,
  ListExecutionsCommand,
  SendTaskFailureCommand,
  SendTaskHeartbeatCommand,
  SendTaskSuccessCommand,
  type SFNClient,
  StartExecutionCommand,
  StopExecutionCommand,
  TaskDoesNotExist,
  TaskTimedOut,
} from '@aws-sdk/client-sfn'
import { z } from 'zod'
import type { StepOutput, TaskAnswer } from '../session/item.ts'

const tokenIsGone = (error: unknown) =>
  error instanceof TaskDoesNotExist || error instanceof TaskTimedOut || error instanceof InvalidToken

export type ExecutionStatus =
  | 'RUNNING'
  | 'SUCCEEDED'
  | 'FAILED'
  | 'TIMED_OUT'
  | 'ABORTED'
  | 'PENDING_REDRIVE'
  | 'MISSING'

const inputSchema = z.object({ team: z.string(), session_id: z.string(), attempt: z.number().int() })
export type ExecutionInput = z.infer<typeof inputSchema>

const parseInput = (text: string): ExecutionInput | null => {
  try {
    return inputSchema.parse(JSON.parse(text))
  } catch {
    return null
  }
}

type Attempt = { team: string; id: string; attempt: number }

/** What an execution is started with; `last` is told to the first step in place of what a step before it said. */
export const executionInput = ({ team, id, attempt }: Attempt): string => {
  const last: Pick<StepOutput, 'at' | 'away'> = { at: 0, away: 0 }
  return JSON.stringify({ team, session_id: id, attempt, last })
}

/** One execution that runs; `started_at` in UTC. */
export type RunningExecution = { arn: string; name: string; started_at: string }

/** The most executions that Step Functions lists in one page. */
const executionsPerPage = 1000

/** The state machine as the product uses it: one execution per attempt of a session. */
export const createMachine = (sfn: SFNClient, stateMachineArn: string) => {
  const executionArn = (name: string) => `${stateMachineArn.replace(':stateMachine:', ':execution:')}:${name}`

  const list = async (maxResults: number, nextToken: string | null) => {
    const input = { stateMachineArn, statusFilter: 'RUNNING', maxResults } as const
    try {
      return await sfn.send(new ListExecutionsCommand({ ...input, ...(nextToken ? { nextToken } : {}) }))
    } catch (error) {
      if (!(nextToken && error instanceof InvalidToken)) throw error
      return sfn.send(new ListExecutionsCommand(input))
    }
  }

  return {
    executionArn,

    /**
     * Starts an attempt's execution; its name is the session's id and the attempt, so a repeat is the same execution.
     * A name is never used for other input: "already exists" is success only for this very session and attempt.
     */
    start: async (session: Attempt): Promise<string> => {
      const name = `${session.id}-${session.attempt}`
      const input = executionInput(session)
      try {
        const answer = await sfn.send(new StartExecutionCommand({ stateMachineArn, name, input }))
        return answer.executionArn ?? executionArn(name)
      } catch (error) {
        if (!(error instanceof ExecutionAlreadyExists)) throw error
        const existing = await sfn.send(new DescribeExecutionCommand({ executionArn: executionArn(name) }))
        // Started before, maybe by a version that told the first step less.
        if (!isDeepStrictEqual(parseInput(existing.input ?? ''), parseInput(input))) throw error
        return executionArn(name)
      }
    },

    /** Gives a parked step its answer. False when nobody waits for it any more: answered before, timed out or stopped. */
    answer: async (answer: TaskAnswer): Promise<boolean> => {
      try {
        if (answer.ok) {
          await sfn.send(
            new SendTaskSuccessCommand({ taskToken: answer.token, output: JSON.stringify(answer.output) }),
          )
        } else {
          await sfn.send(
            new SendTaskFailureCommand({ taskToken: answer.token, error: answer.error, cause: answer.cause }),
          )
        }
        return true
      } catch (error) {
        if (tokenIsGone(error)) return false
        throw error
      }
    },

    /** Says that the work behind a token goes on. False when the machine waits for it no more. */
    heartbeat: async (token: string): Promise<boolean> => {
      try {
        await sfn.send(new SendTaskHeartbeatCommand({ taskToken: token }))
        return true
      } catch (error) {
        if (tokenIsGone(error)) return false
        throw error
      }
    },

    status: async (arn: string): Promise<ExecutionStatus> => {
      try {
        const answer = await sfn.send(new DescribeExecutionCommand({ executionArn: arn }))
        return answer.status ?? 'MISSING'
      } catch (error) {
        if (error instanceof ExecutionDoesNotExist) return 'MISSING'
        throw error
      }
    },

    /**
     * At most `limit` of the executions that run, newest first, and where the next call goes on; `next` is null at the
     * end. A place that Step Functions no longer knows (they last a day) is the beginning again. A look that always
     * began at the newest would never come to the oldest of more than `limit`.
     */
    running: async (
      limit: number,
      from: string | null = null,
    ): Promise<{ executions: RunningExecution[]; next: string | null }> => {
      const executions: RunningExecution[] = []
      let next = from
      do {
        const page = await list(Math.min(limit - executions.length, executionsPerPage), next)
        for (const { executionArn: arn, name, startDate } of page.executions ?? [])
          if (arn && name && startDate) executions.push({ arn, name, started_at: startDate.toISOString() })
        next = page.nextToken ?? null
      } while (next !== null && executions.length < limit)
      return { executions, next }
    },

    /** For which attempt of which session an execution was started; null when it is gone or none of ours. */
    inputOf: async (arn: string): Promise<ExecutionInput | null> => {
      try {
        const { input } = await sfn.send(new DescribeExecutionCommand({ executionArn: arn }))
        return parseInput(input ?? '')
      } catch (error) {
        if (error instanceof ExecutionDoesNotExist) return null
        throw error
      }
    },

    /** Ends an execution as ABORTED; harmless for one that has ended or is gone. */
    stop: async (arn: string, error: string, cause: string): Promise<void> => {
      try {
        await sfn.send(new StopExecutionCommand({ executionArn: arn, error, cause }))
      } catch (failure) {
        if (!(failure instanceof ExecutionDoesNotExist)) throw failure
      }
    },

    /** The history of one execution, oldest first; empty when there is none. */
    history: async (arn: string): Promise<HistoryEvent[]> => {
      const events: HistoryEvent[] = []
      let nextToken: string | undefined
      try {
        do {
          const page = await sfn.send(
            new GetExecutionHistoryCommand({
              executionArn: arn,
              maxResults: 1000,
              ...(nextToken ? { nextToken } : {}),
            }),
          )
          events.push(...(page.events ?? []))
          nextToken = page.nextToken
        } while (nextToken)
      } catch (error) {
        if (!(error instanceof ExecutionDoesNotExist)) throw error
      }
      return events
    },
  }
}
