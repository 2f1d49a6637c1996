import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { type Client, createClient } from '../e2e/client.ts'
import type { When } from './write-seam.ts'

const program = fileURLToPath(new URL('./stack-process.ts', import.meta.url))
const messageSchema = z.union([
  z.strictObject({ ready: z.strictObject({ url: z.string(), token: z.string() }) }),
  z.strictObject({ writes: z.array(z.string()) }),
  z.strictObject({ killed: z.string() }),
])
type Message = z.infer<typeof messageSchema>

export type StackChild = {
  api: Client
  /** Counts the writes from now on. */
  count: () => Promise<void>
  /** The names of the writes since then. */
  writes: () => Promise<string[]>
  /** Has it end itself at the n-th write from now on. */
  arm: (n: number, when: When) => Promise<void>
  /** Ends it, and nothing that it started, with SIGKILL; resolves when it is gone. */
  kill: () => Promise<void>
  /** Resolves when the process has ended, to the write that ended it or to null. */
  ended: Promise<string | null>
  /** What it wrote about its own faults. */
  faults: () => string
}

/** Starts the whole stack on a folder as a process of its own; rejects with what it said when it can't start. */
export const startStackChild = async (
  home: string,
  armed?: { n: number; when: When },
): Promise<StackChild> => {
  const child = spawn(process.execPath, [program], {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: home,
      STACK_HOME: home,
      NODE_COMPILE_CACHE: `${home}/compile-cache`,
      ...(armed ? { STACK_ARM: JSON.stringify(armed) } : {}),
    },
  })
  const heard: { text: string; killed: string | null } = { text: '', killed: null }
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    heard.text += text
  })
  child.stdin.on('error', () => {})
  const exit = once(child, 'close')
  const waiting: ((message: Message) => void)[] = []
  const next = (): Promise<Message> =>
    new Promise((resolve, reject) => {
      waiting.push(resolve)
      void exit.then(() => reject(new Error(`the stack has ended: ${heard.text}`)))
    })
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = messageSchema.parse(JSON.parse(line))
    if ('killed' in message) heard.killed = message.killed
    else waiting.shift()?.(message)
  })
  const order = async (text: unknown): Promise<string[]> => {
    const answer = next()
    child.stdin.write(`${JSON.stringify(text)}\n`)
    const message = await answer
    return 'writes' in message ? message.writes : []
  }
  const ready = await next()
  if (!('ready' in ready)) throw new Error('the stack said something else than that it is ready')
  const ended = exit.then(() => heard.killed)
  return {
    api: createClient(ready.ready.url, ready.ready.token),
    count: async () => void (await order({ count: true })),
    writes: () => order({ writes: true }),
    arm: async (n, when) => void (await order({ arm: { n, when } })),
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
    ended,
    faults: () => heard.text,
  }
}
