import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { temporaryFolder } from '../../repositories.ts'

const program = fileURLToPath(new URL('./waiting-process.ts', import.meta.url))
const count = { few: 50, many: 2_000, answered: 10 }

const heldSchema = z.strictObject({
  bytes: z.number(),
  active_timers: z.number(),
  timers: z.number(),
  children: z.number(),
  workers: z.number(),
  at_work: z.number(),
})
const measuredSchema = z.strictObject({
  few: heldSchema,
  many: heldSchema,
  answered: z.array(z.strictObject({ ids: z.array(z.number()), entered: z.array(z.string()) })),
})

/** Timers that come and go with what the services happen to do: sockets, the one timer of all deadlines. */
const passingTimers = 20

test('2,000 sessions at a gate: no process, no timer and less than 4 KB of memory for each', async () => {
  const home = temporaryFolder()
  const { stdout } = await execa(
    process.execPath,
    // Code that is forgotten while sessions arrive would be counted against what they hold.
    ['--expose-gc', '--no-flush-bytecode', '--disable-warning=ExperimentalWarning', program],
    {
      extendEnv: false,
      timeout: 150_000,
      env: {
        PATH: process.env.PATH,
        HOME: home,
        WAITING_HOME: home,
        WAITING_FEW: String(count.few),
        WAITING_MANY: String(count.many),
        WAITING_ANSWERED: String(count.answered),
      },
    },
  )
  const { few, many, answered } = measuredSchema.parse(JSON.parse(stdout))
  const perSession = (many.bytes - few.bytes) / (count.many - count.few)
  console.info(
    `a waiting session holds ${Math.round(perSession)} bytes; ${many.timers} timers (${few.timers} with ${count.few} sessions)`,
  )

  expect(many.at_work).toBe(0)
  expect([many.children, many.workers]).toEqual([0, 0])
  expect(many.active_timers).toBeLessThanOrEqual(few.active_timers)
  expect(many.timers).toBeLessThanOrEqual(few.timers + passingTimers)
  expect(perSession).toBeLessThan(4_096)

  expect(answered).toHaveLength(count.answered)
  for (const { ids, entered } of answered) {
    expect(entered.filter((name) => name === 'Confirm')).toHaveLength(1)
    expect(entered.at(-1)).toBe('Code')
    expect(ids).toEqual(ids.map((_, at) => at + 1))
  }
}, 180_000)
