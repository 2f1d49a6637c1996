import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'

const answerSchema = z.object({
  id: z.number(),
  result: z.unknown().optional(),
  prelude: z.object({ statusCode: z.number(), headers: z.record(z.string(), z.string()) }).optional(),
  body: z.string().optional(),
  error: z.object({ name: z.string(), message: z.string() }).optional(),
})
const readySchema = z.object({ ready: z.literal(true) })
export type Answer = z.infer<typeof answerSchema>

/** A process that holds one bundled function. */
export type LambdaProcess = {
  /** Calls the function; `remainingMs` is what is left of its time. Rejects with what the function threw. */
  invoke: (event: unknown, remainingMs?: number) => Promise<Answer>
  stop: () => Promise<void>
}

/** Starts the bundle in `directory` with this environment and no other. */
export const startLambda = async (directory: string, env: Record<string, string>): Promise<LambdaProcess> => {
  const program = pathToFileURL(join(directory, 'index.mjs')).href
  const child = fork(join(import.meta.dirname, 'lambda-host.ts'), [program], { env, execArgv: [] })
  const calls = new Map<number, PromiseWithResolvers<Answer>>()
  const ready = Promise.withResolvers<void>()
  child.once('exit', (code) => {
    const error = new Error(`the function's process ended with ${code}`)
    ready.reject(error)
    for (const call of calls.values()) call.reject(error)
  })
  child.on('message', (message) => {
    if (readySchema.safeParse(message).success) return ready.resolve()
    const answer = answerSchema.parse(message)
    const call = calls.get(answer.id)
    calls.delete(answer.id)
    if (answer.error)
      call?.reject(Object.assign(new Error(answer.error.message), { name: answer.error.name }))
    else call?.resolve(answer)
  })
  await ready.promise
  let last = 0
  return {
    invoke: (event, remainingMs = 60_000) => {
      last += 1
      const call = Promise.withResolvers<Answer>()
      calls.set(last, call)
      child.send({ id: last, event, remaining_ms: remainingMs })
      return call.promise
    },
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}
