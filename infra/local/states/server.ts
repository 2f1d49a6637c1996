import { join } from 'node:path'
import { guardJson } from '../doors/json-door.ts'
import type { KeyPair } from '../doors/key-pair.ts'
import { listenOnLoopback, stopServer } from '../loopback.ts'
import { stateMachineArn } from './arns.ts'
import { Deadlines } from './deadlines.ts'
import { prepareMachine } from './definition-preparation.ts'
import { readDefinition } from './definition-support.ts'
import type { Invoke } from './execution.ts'
import { ExecutionStore } from './execution-store.ts'
import { Executions } from './executions.ts'
import { operationsOf } from './operations.ts'
import { createProtocolServer } from './protocol.ts'
import { timeoutTemplate } from './task-errors.ts'
import { Tokens } from './tokens.ts'

export interface StatesOptions {
  /** Where executions and their histories are kept, across restarts; held by one process at a time. */
  directory: string
  /** Only requests that are signed with them are answered. */
  keys: KeyPair
  /** 0 or absent takes a free one. */
  port?: number
  region: string
  /** Twelve digits; `000000000000` when absent. */
  accountId?: string
  /** Standard state machines: Amazon States Language, JSONPath. */
  definitions: { name: string; definition: object }[]
  /** Called for each attempt at a task, at most once an attempt; may reject, and the error's name is the task's error. */
  invoke: Invoke
}

/**
 * Starts Step Functions on 127.0.0.1. Executions that were running when the folder was last in use read `ABORTED`.
 * Rejects, naming states and fields, when a definition holds anything that is not run as Step Functions would run it.
 */
export async function startStates(options: StatesOptions): Promise<{
  endpoint: string
  /** By machine name. */
  stateMachineArns: Record<string, string>
  /** How many executions are in memory with all that they work with; others that run wait for a task token. */
  atWork(): number
  close(): Promise<void>
}> {
  const place = { region: options.region, accountId: options.accountId ?? '000000000000' }
  const machines = new Map(
    options.definitions.map(({ name, definition }) => [
      name,
      prepareMachine(definition, readDefinition(name, definition)),
    ]),
  )
  const store = await ExecutionStore.open(options.directory)
  const deadlines = new Deadlines()
  const executions = new Executions({
    place,
    machines,
    store,
    deadlines,
    tokens: await Tokens.open(join(options.directory, 'token-key')),
    timeoutTemplate: await timeoutTemplate(),
    invoke: options.invoke,
  })
  const server = createProtocolServer(
    operationsOf({ place, machines, store, executions, createdAt: Date.now() }),
  )
  guardJson(server, { keys: options.keys, service: 'states' })
  const endpoint = await listenOnLoopback(server, options.port)
  return {
    endpoint,
    stateMachineArns: Object.fromEntries(
      [...machines.keys()].map((name) => [name, stateMachineArn(place, name)]),
    ),
    atWork: () => executions.atWork(),
    async close() {
      await stopServer(server)
      await executions.close()
      deadlines.clear()
    },
  }
}
