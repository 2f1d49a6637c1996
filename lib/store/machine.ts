import {
  DescribeExecutionCommand,
  ExecutionAlreadyExists,
  ExecutionDoesNotExist,
  GetExecutionHistoryCommand,
  type HistoryEvent,
  InvalidToken,
  SendTaskFailureCommand,
  SendTaskHeartbeatCommand,
  SendTaskSuccessCommand,
  type SFNClient,
  StartExecutionCommand,
  TaskDoesNotExist,
  TaskTimedOut,
} from '@aws-sdk/client-sfn'
import type { TaskAnswer } from '../session/item.ts'

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

/** The state machine as the product uses it: one execution per attempt of a session. */
export const createMachine = (sfn: SFNClient, stateMachineArn: string) => {
  const executionArn = (name: string) => `${stateMachineArn.replace(':stateMachine:', ':execution:')}:${name}`
  return {
    executionArn,

    /**
     * Starts an attempt's execution; its name is the session's id and the attempt, so a repeat is the same execution.
     * A name is never used for other input: "already exists" is success only for this very session and attempt.
     */
    start: async (session: { team: string; id: string; attempt: number }): Promise<string> => {
      const name = `${session.id}-${session.attempt}`
      const input = JSON.stringify({ team: session.team, session_id: session.id, attempt: session.attempt })
      try {
        const answer = await sfn.send(new StartExecutionCommand({ stateMachineArn, name, input }))
        return answer.executionArn ?? executionArn(name)
      } catch (error) {
        if (!(error instanceof ExecutionAlreadyExists)) throw error
        const existing = await sfn.send(new DescribeExecutionCommand({ executionArn: executionArn(name) }))
        if (existing.input !== input) throw error
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
