import type { z } from 'zod'
import {
  executionArn,
  type Place,
  parseExecutionArn,
  parseStateMachineArn,
  roleArn,
  stateMachineArn,
} from './arns.ts'
import type { PreparedMachine } from './definition-preparation.ts'
import type { ExecutionStore, ExecutionSummary } from './execution-store.ts'
import type { Executions } from './executions.ts'
import { withoutData } from './history-events.ts'
import { exceedsPayload } from './limits.ts'
import { outcomeOf } from './outcome.ts'
import { pageOf, pageOfNewest } from './paging.ts'
import * as requests from './requests.ts'
import { invalidRequest, ServiceError } from './service-error.ts'
import { isJson } from './start-rules.ts'

/** An operation of the service: a request body in, the answer's body out. Times in answers are in epoch seconds. */
export type Operation = (body: unknown) => Promise<object>

export interface OperationServices {
  place: Place
  machines: Map<string, PreparedMachine>
  store: ExecutionStore
  executions: Executions
  createdAt: number
}

/** The operations that this endpoint has, by name; it refuses every other. */
export function operationsOf({ place, machines, store, executions, createdAt }: OperationServices) {
  const arnOf = ({ machine, name }: ExecutionSummary) => executionArn(place, machine, name)
  const known = (arn: string): ExecutionSummary => {
    const { machine, name } = parseExecutionArn(arn)
    const summary = store.get(machine, name)
    if (!summary || arnOf(summary) !== arn) {
      throw new ServiceError('ExecutionDoesNotExist', `Execution Does Not Exist: '${arn}'`)
    }
    return summary
  }
  const machineOf = (arn: string): { name: string; machine: PreparedMachine } => {
    const name = parseStateMachineArn(arn)
    const machine = machines.get(name)
    if (!machine || stateMachineArn(place, name) !== arn) {
      throw new ServiceError('StateMachineDoesNotExist', `State Machine Does Not Exist: '${arn}'`)
    }
    return { name, machine }
  }
  const itemOf = (summary: ExecutionSummary) => ({
    executionArn: arnOf(summary),
    stateMachineArn: stateMachineArn(place, summary.machine),
    name: summary.name,
    status: summary.status,
    startDate: seconds(summary.startDate),
    ...(summary.stopDate === undefined ? {} : { stopDate: seconds(summary.stopDate) }),
    redriveCount: 0,
  })
  const machineItem = (name: string) => ({
    stateMachineArn: stateMachineArn(place, name),
    name,
    type: 'STANDARD',
    creationDate: seconds(createdAt),
  })

  return new Map<string, Operation>([
    [
      'StartExecution',
      operation(requests.startExecutionRequest, async ({ stateMachineArn: arn, name, input }) => {
        const summary = await executions.start(machineOf(arn).name, name, input)
        return { executionArn: arnOf(summary), startDate: seconds(summary.startDate) }
      }),
    ],
    [
      'DescribeExecution',
      operation(requests.describeExecutionRequest, async ({ executionArn: arn, includedData }) => {
        const summary = known(arn)
        const outcome = outcomeOf(await executions.history(summary), includedData === 'ALL_DATA')
        return {
          ...itemOf(summary),
          ...outcome,
          redriveStatus: 'NOT_REDRIVABLE',
          redriveStatusReason: 'Executions of the embedded endpoint are not redriven.',
        }
      }),
    ],
    [
      'StopExecution',
      operation(requests.stopExecutionRequest, async ({ executionArn: arn, error, cause }) => {
        const summary = known(arn)
        await executions.stop(summary, { error, cause })
        return { stopDate: seconds(summary.stopDate ?? Date.now()) }
      }),
    ],
    [
      'ListExecutions',
      operation(requests.listExecutionsRequest, async ({ stateMachineArn: arn, statusFilter, ...paging }) => {
        const all = store.list(machineOf(arn).name)
        const wanted = (summary: ExecutionSummary) =>
          statusFilter === undefined || summary.status === statusFilter
        const { page, ...next } = pageOfNewest(all, `executions ${arn} ${statusFilter ?? ''}`, paging, wanted)
        return { executions: page.map(itemOf), ...next }
      }),
    ],
    [
      'GetExecutionHistory',
      operation(requests.getExecutionHistoryRequest, async (request) => {
        const { executionArn: arn, reverseOrder, includeExecutionData, ...paging } = request
        const history = await executions.history(known(arn))
        const ordered = reverseOrder ? history.toReversed() : history
        const { page, ...next } = pageOf(ordered, `history ${arn} ${reverseOrder}`, paging)
        return { events: includeExecutionData ? page : page.map(withoutData), ...next }
      }),
    ],
    [
      'DescribeStateMachine',
      operation(requests.describeStateMachineRequest, async ({ stateMachineArn: arn }) => {
        const { name, machine } = machineOf(arn)
        return {
          ...machineItem(name),
          status: 'ACTIVE',
          definition: machine.text,
          roleArn: roleArn(place),
          loggingConfiguration: { level: 'OFF', includeExecutionData: false },
          tracingConfiguration: { enabled: false },
        }
      }),
    ],
    [
      'ListStateMachines',
      operation(requests.listStateMachinesRequest, async (paging) => {
        const { page, ...next } = pageOf([...machines.keys()], 'machines', paging)
        return { stateMachines: page.map(machineItem), ...next }
      }),
    ],
    [
      'SendTaskSuccess',
      operation(requests.sendTaskSuccessRequest, async ({ taskToken, output }) => {
        if (exceedsPayload(output) || !isJson(output)) {
          throw new ServiceError('InvalidOutput', "Invalid Output: 'not JSON, or over the payload quota'")
        }
        await executions.answer(taskToken, (attempt) => attempt.succeed(output))
        return {}
      }),
    ],
    [
      'SendTaskFailure',
      operation(requests.sendTaskFailureRequest, async ({ taskToken, error, cause }) => {
        await executions.answer(taskToken, (attempt) => attempt.fail({ error, cause }))
        return {}
      }),
    ],
    [
      'SendTaskHeartbeat',
      operation(requests.sendTaskHeartbeatRequest, async ({ taskToken }) => {
        await executions.beat(taskToken)
        return {}
      }),
    ],
  ])
}

const seconds = (milliseconds: number) => milliseconds / 1_000

function operation<Schema extends z.ZodType>(
  schema: Schema,
  run: (request: z.output<Schema>) => Promise<object>,
): Operation {
  return async (body) => {
    const { data, error } = schema.safeParse(body)
    if (error) {
      const found = error.issues.map((issue) => `Value at '${issue.path.join('.')}': ${issue.message}`)
      throw invalidRequest(`${found.length} validation error(s) detected: ${found.join('; ')}`)
    }
    return run(data)
  }
}
