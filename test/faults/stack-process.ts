import { createInterface } from 'node:readline'
import { z } from 'zod'
import { startStack } from '../../infra/local/stack.ts'
import { watchWrites } from './write-seam.ts'

const armSchema = z.strictObject({ n: z.number(), when: z.enum(['before', 'after']) })

/**
 * The whole stack as a program, for tests that kill it. It says in a line of JSON when it is ready, and obeys lines of
 * JSON: `arm` it to end itself at a write, `count` the writes from now on, tell the `writes`. It ends with its input.
 */
const orderSchema = z.union([
  z.strictObject({ arm: armSchema }),
  z.strictObject({ count: z.literal(true) }),
  z.strictObject({ writes: z.literal(true) }),
])
/** STACK_ARM arms it before anything is written. */
const { STACK_HOME, STACK_ARM } = z
  .object({ STACK_HOME: z.string(), STACK_ARM: z.string().optional() })
  .parse(process.env)

const say = (message: unknown) => process.stdout.write(`${JSON.stringify(message)}\n`)

const seam: { writes?: ReturnType<typeof watchWrites> } = {}
const stack = await startStack({
  port: 0,
  home: STACK_HOME,
  concurrency: 2,
  log: (line) => process.stderr.write(`${line}\n`),
  onClients: (clients) => {
    seam.writes = watchWrites(clients)
    if (STACK_ARM === undefined) return
    const { n, when } = armSchema.parse(JSON.parse(STACK_ARM))
    seam.writes.arm(n, when)
  },
})
say({ ready: { url: stack.url, token: stack.adminToken } })

for await (const line of createInterface({ input: process.stdin })) {
  const order = orderSchema.parse(JSON.parse(line))
  if ('arm' in order) seam.writes?.arm(order.arm.n, order.arm.when)
  else if ('count' in order) seam.writes?.count()
  say({ writes: seam.writes?.writes() ?? [] })
}
process.exit(0)
