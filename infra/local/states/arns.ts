import { ServiceError } from './service-error.ts'

/** Where the machines live: the middle of every ARN. */
export interface Place {
  region: string
  accountId: string
}

export const stateMachineArn = (place: Place, machine: string) =>
  `arn:aws:states:${place.region}:${place.accountId}:stateMachine:${machine}`

export const executionArn = (place: Place, machine: string, name: string) =>
  `arn:aws:states:${place.region}:${place.accountId}:execution:${machine}:${name}`

export const roleArn = (place: Place) => `arn:aws:iam::${place.accountId}:role/embedded-states`

/** The machine and execution that an execution's ARN names; `InvalidArn` when it is none. */
export function parseExecutionArn(arn: string): { machine: string; name: string } {
  const [prefix, partition, service, , , resource, machine, name, ...rest] = arn.split(':')
  if (prefix !== 'arn' || !partition || service !== 'states' || resource !== 'execution' || rest.length > 0) {
    throw invalidArn(arn)
  }
  if (!machine || !name) throw invalidArn(arn)
  return { machine, name }
}

/** The machine that a state machine's ARN names; `InvalidArn` when it is none. */
export function parseStateMachineArn(arn: string): string {
  const [prefix, partition, service, , , resource, machine] = arn.split(':')
  if (prefix !== 'arn' || !partition || service !== 'states' || resource !== 'stateMachine' || !machine) {
    throw invalidArn(arn)
  }
  return machine
}

const invalidArn = (arn: string) => new ServiceError('InvalidArn', `Invalid Arn: '${arn}'`)
