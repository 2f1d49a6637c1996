import { writeSync } from 'node:fs'
import type { Clients } from '../../lib/store/clients.ts'

export type When = 'before' | 'after'

/** Calls by which the product changes something outside of its process. */
const isWrite = (command: string) =>
  /^(Put(Item|Object)|DeleteItem|UpdateItem|StartExecution|SendTask(Success|Failure|Heartbeat))Command$/.test(
    command,
  )

/** Ends this process as a power cut would; says first where, for the test's message. */
const die = (command: string): void => {
  writeSync(1, `${JSON.stringify({ killed: command })}\n`)
  process.kill(process.pid, 'SIGKILL')
}

/** Sees every write that the product makes through its SDK clients; ends the process at the one it is armed for. */
export const watchWrites = ({ dynamo, s3, sfn }: Clients) => {
  const state: { writes: string[]; armed: { n: number; when: When } | null } = { writes: [], armed: null }
  const pass = async <Answer>(command: string | undefined, call: () => Promise<Answer>): Promise<Answer> => {
    if (command === undefined || !isWrite(command)) return call()
    state.writes.push(command.replace(/Command$/, ''))
    const here = state.armed?.n === state.writes.length ? state.armed.when : null
    if (here === 'before') die(command)
    try {
      return await call()
    } finally {
      // Also after a refusal: the write that it lost against has been made.
      if (here === 'after') die(command)
    }
  }
  const options = { step: 'initialize', name: 'watchWrites', override: true } as const
  dynamo.middlewareStack.add(
    (next, { commandName }) =>
      (args) =>
        pass(commandName, () => next(args)),
    options,
  )
  s3.middlewareStack.add(
    (next, { commandName }) =>
      (args) =>
        pass(commandName, () => next(args)),
    options,
  )
  sfn.middlewareStack.add(
    (next, { commandName }) =>
      (args) =>
        pass(commandName, () => next(args)),
    options,
  )
  return {
    /** Counts from here; at the n-th write from now on the process ends. */
    arm: (n: number, when: When): void => {
      state.writes = []
      state.armed = { n, when }
    },
    /** Counts from here, and ends nothing. */
    count: (): void => {
      state.writes = []
      state.armed = null
    },
    /** The writes since then, by name. */
    writes: (): readonly string[] => state.writes,
  }
}
