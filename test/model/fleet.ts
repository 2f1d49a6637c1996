import { newId } from '../../lib/ids.ts'
import { type Command, commandAnswerSchema, leaseSchema, type Result } from '../../lib/session/protocol.ts'
import type { Compute } from '../../lib/store/platform.ts'
import { sha } from '../support/sessions.ts'
import { checkpoint, goodResult, pick, someResult } from './results.ts'
import { team } from './services.ts'

/** A request of a worker, kept until it is answered: what it has no answer to it sends again. */
type Sent = { path: string; body: unknown }

export type Worker = {
  id: string
  session: string
  token: string
  alive: boolean
  epoch: number | null
  command: Command | null
  pending: Sent | null
  question: string | null
}

export type Answer = { status: number; body: Record<string, unknown> }
type Send = (token: string, path: string, body?: unknown) => Promise<Answer | null>

/** Workers that are only what they say through the worker protocol. */
export const createFleet = (options: {
  send: Send
  now: () => number
  /** Told of each command that a worker is given, and of another that has one of the same session in hand. */
  given: (worker: Worker, command: Command, other: Worker | undefined) => void
  /** Uploads the bundle of a checkpoint. */
  saveBundle: (session: string, name: string) => Promise<void>
  /** Uploads what a review shows. */
  saveReview: (session: string) => Promise<void>
}) => {
  const workers: Worker[] = []
  /** Ends of workers that nobody has been told of yet. */
  const ended: Worker[] = []

  const die = (worker: Worker): void => {
    if (!worker.alive) return
    worker.alive = false
    ended.push(worker)
  }

  const compute: Compute = {
    launch: async ({ id, session_id, token }) => {
      if (workers.some((worker) => worker.id === id)) return
      workers.push({
        ...{ id, session: session_id, token, alive: true },
        ...{ epoch: null, command: null, pending: null, question: null },
      })
    },
    running: async (id) => workers.some((worker) => worker.id === id && worker.alive),
    list: async () =>
      workers.flatMap(({ id, session, alive }) => (alive ? [{ id, team, session_id: session }] : [])),
    stop: async (id) => {
      const worker = workers.find((one) => one.id === id)
      if (worker) die(worker)
    },
    forget: async () => {},
  }

  /** Sends a request, or the one that was not answered; null when there is no answer this time either. */
  const ask = async (worker: Worker, fresh: Sent): Promise<Answer | null> => {
    const request = worker.pending ?? fresh
    worker.pending = request
    const answer = await options.send(worker.token, request.path, request.body)
    // A server's fault is no answer: it may or may not have done it.
    if (answer === null || answer.status >= 500) return null
    worker.pending = null
    if (answer.status === 401 || answer.status === 409) die(worker)
    return answer
  }

  const leasing = ({ id }: Worker): Sent => ({ path: 'lease', body: { claim: `${id} of the model` } })

  const takeLease = async (worker: Worker): Promise<void> => {
    const answer = await ask(worker, leasing(worker))
    if (answer?.status === 200) worker.epoch = leaseSchema.parse(answer.body).epoch
  }

  const takeCommand = async (worker: Worker): Promise<boolean> => {
    const answer = await options.send(worker.token, `command?epoch=${worker.epoch}&wait_ms=0`)
    if (answer === null || answer.status >= 500) return false
    if (answer.status !== 200) {
      die(worker)
      return true
    }
    const told = commandAnswerSchema.parse(answer.body)
    if (told.kind === 'stop') die(worker)
    if (told.kind === 'command') {
      const isOther = ({ id, session, alive, command }: Worker) =>
        alive && session === worker.session && id !== worker.id && command !== null
      options.given(worker, told.command, workers.find(isOther))
      worker.command = told.command
    }
    return told.kind !== 'wait'
  }

  /** The request that ends a command, behind the uploads that it speaks of. */
  const ending = async ({ session, epoch }: Worker, { id }: Command, result: Result): Promise<Sent> => {
    const saved = 'checkpoint' in result ? result.checkpoint.bundle : null
    if (saved !== null) await options.saveBundle(session, saved)
    if (result.outcome === 'Verify' && result.review) await options.saveReview(session)
    return { path: 'complete', body: { epoch, command_id: id, result, facts: [] } }
  }

  const complete = async (worker: Worker, command: Command, result: Result): Promise<void> => {
    const answer = await ask(worker, await ending(worker, command, result))
    if (answer?.status === 200) worker.command = null
  }

  const askQuestion = async (worker: Worker): Promise<void> => {
    if (worker.question === null) {
      const request_id = newId('req')
      const body = { epoch: worker.epoch, request_id, prompt: 'Which one?' }
      const answer = await options.send(worker.token, 'question', body)
      if (answer?.status === 200) worker.question = request_id
      return
    }
    const query = `question?epoch=${worker.epoch}&request_id=${worker.question}&wait_ms=0`
    const answer = await options.send(worker.token, query)
    if (answer?.status === 200 && answer.body.status !== 'pending') worker.question = null
  }

  const small = (worker: Worker, dice: number): Sent =>
    pick(
      [
        { path: 'heartbeat', body: { epoch: worker.epoch } },
        {
          path: 'entries',
          body: {
            epoch: worker.epoch,
            batch_id: newId('evt'),
            facts: [{ type: 'error', data: { message: `${dice}` } }],
          },
        },
      ],
      dice,
    )

  return {
    compute,
    workers,
    ended,
    die,

    /** What a worker does next; false when there is nothing for it to do. `good` lets all go well. */
    progress: async (worker: Worker, dice: number, good = false): Promise<boolean> => {
      if (worker.pending && worker.pending.path !== 'lease' && worker.command) {
        const { command } = worker
        const isEnd = worker.pending.path === 'complete'
        const answer = await ask(worker, worker.pending)
        if (isEnd && answer?.status === 200 && worker.command === command) worker.command = null
        return true
      }
      if (worker.epoch === null) {
        await takeLease(worker)
        return true
      }
      const { command } = worker
      if (!command) return takeCommand(worker)
      if (!good && dice % 5 === 0) await ask(worker, small(worker, dice >> 3))
      else if (!good && command.step === 'Code' && dice % 7 === 0) await askQuestion(worker)
      else
        await complete(worker, command, good ? goodResult(command) : someResult(command, dice, options.now()))
      return true
    },

    /** A request of a worker that may long be gone: it was under way, or is sent twice. */
    late: async (worker: Worker, dice: number): Promise<Answer | null> => {
      const epoch = worker.epoch ?? 1
      await options.saveBundle(worker.session, 'e.bundle')
      const requests: Sent[] = [
        small({ ...worker, epoch }, dice >> 3),
        { path: 'retain', body: { epoch, checkpoint: checkpoint(sha('e')) } },
        ...(worker.pending ? [worker.pending] : []),
        ...(worker.command
          ? [await ending(worker, worker.command, someResult(worker.command, dice >> 2, options.now()))]
          : [leasing(worker)]),
      ]
      const request = requests[dice % requests.length]
      return request ? options.send(worker.token, request.path, request.body) : null
    },
  }
}
