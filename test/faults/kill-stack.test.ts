import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { type TestRepository, temporaryFolder } from '../repositories.ts'
import { openKept, until } from './kept.ts'
import { type StackChild, startStackChild } from './stack-child.ts'
import { trivialSession } from './trivial.ts'
import { requireWhole, seeThrough } from './whole.ts'
import type { When } from './write-seam.ts'

// What is awaited is a fact; how long it takes is the machine's matter.
vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 120_000 })

/** Every `step`-th moment is tried, 1 for all of them; another seed tries others. */
const step = Number(process.env.GATEHOUSE_FAULTS_STEP ?? 13)
const seed = Number(process.env.GATEHOUSE_FAULTS_SEED ?? 3)
/** Two stacks at a time, each going from kill to kill on a folder of its own. */
const lanes = [1, 2].map((lane) => ({ lane, home: temporaryFolder() }))

const startedSchema = z.object({ id: z.string() })

/** Writes of a start that finds one session at a gate, until it is back at its gate. */
const writesOfPickUp = 13

type Started = { key: string; repository: TestRepository; body: unknown; id: string | null }

const newSession = (home: string): Started => {
  const key = randomUUID()
  return { key, ...trivialSession({}, join(home, 'repositories', key)), id: null }
}

/** Asks for the session until it is there; the same call however often the stack dies under it. */
const post = async ({ api }: StackChild, session: Started): Promise<string> => {
  const answer = await api.call('POST', '/v1/sessions', session.body, { 'idempotency-key': session.key })
  expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 201 })
  session.id = startedSchema.parse(answer.body).id
  return session.id
}

/** A whole session, from its start until nothing of it is left to do. */
const runWhole = async (stack: StackChild, home: string, session: Started): Promise<void> => {
  const kept = openKept(home)
  try {
    const id = await post(stack, session)
    await seeThrough(stack.api, id)
    await kept.settled(id)
  } finally {
    kept.close()
  }
}

/** After the kill: the call is repeated as its caller would, and the session has to end as if nothing had happened. */
const goOn = async (stack: StackChild, home: string, session: Started): Promise<void> => {
  const kept = openKept(home)
  try {
    if (session.id === null) await kept.ageClaim(session.key)
    const id = await post(stack, session)
    await seeThrough(stack.api, id)
    await requireWhole(stack.api, kept, { id, repository: session.repository })
    expect(await kept.slots()).toEqual([])
  } finally {
    kept.close()
  }
}

const bounded = async <T>(what: string, run: Promise<T>): Promise<T> => {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`not within a minute: ${what}`)), 60_000)
  try {
    return await Promise.race([run, promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits until an execution of this very stack waits at the session's review. */
const backAtReview = async (home: string, id: string): Promise<true> => {
  const kept = openKept(home)
  try {
    return await until('an execution is at Review', async () => {
      const { runtime, outbox } = await kept.item(id)
      const { execution_arn: arn, task } = runtime
      if (arn === null || task?.step !== 'Review' || outbox.length > 0) return null
      return (await kept.machine.status(arn)) === 'RUNNING' ? true : null
    })
  } finally {
    kept.close()
  }
}

type Moment = { n: number; when: When; name: string }

/** The moments to try: each `step`-th of all, and at least one for each kind of write. */
const choose = (writes: readonly string[]): Moment[] => {
  const all = writes.flatMap((name, at) => [
    { n: at + 1, when: 'before' as const, name },
    { n: at + 1, when: 'after' as const, name },
  ])
  const chosen = all.filter((_, at) => at % step === seed % step)
  const kinds = new Set(chosen.map(({ name }) => name))
  const others = [...new Set(writes)].filter((name) => !kinds.has(name))
  return [...chosen, ...others.flatMap((kind) => all.find(({ name }) => name === kind) ?? [])]
}

const tried = step === 1 ? 'every moment' : `every ${step}th moment`

describe(`the whole stack is killed before or after a write of a session, at ${tried}`, () => {
  const dry: { moments: Moment[] } = { moments: [] }
  beforeAll(async () => {
    const home = temporaryFolder()
    const stack = await startStackChild(home)
    await stack.count()
    await runWhole(stack, home, newSession(home))
    dry.moments = choose(await stack.writes())
    await stack.kill()
  })

  test.concurrent.each(lanes)(
    'and started again, as if nothing had happened (lane $lane)',
    async ({ lane, home }) => {
      const mine = dry.moments.filter((_, at) => at % lanes.length === lane - 1)
      const failures: string[] = []
      let kills = 0
      let stack = await startStackChild(home)
      for (const { n, when, name } of mine) {
        const session = newSession(home)
        const at = `${when} write ${n} (${name})`
        try {
          await stack.arm(n, when)
          const run = runWhole(stack, home, session).catch(() => {})
          await bounded(
            'the kill, or the end of a session with fewer writes',
            Promise.race([stack.ended, run]),
          )
          // One that was not killed by itself had fewer writes than the first session, and is killed after them.
          await stack.kill()
          if ((await stack.ended) !== null) kills += 1
          await run
          stack = await startStackChild(home)
          await bounded('the end of the session', goOn(stack, home, session))
          expect(stack.faults()).toBe('')
        } catch (error) {
          failures.push(`killed ${at}, session ${session.id}: ${error}\n${stack.faults()}`)
        }
      }
      await stack.kill()
      expect(failures).toEqual([])
      expect(kills).toBeGreaterThan(mine.length / 2)
    },
  )
})

test('a stack that is killed again and again while it picks a session up still does so in the end', async () => {
  const home = temporaryFolder()
  const session = newSession(home)
  const first = await startStackChild(home)
  await post(first, session)
  const id = session.id ?? ''
  const atGate = await first.api.untilGate(id, 'approval')
  await first.kill()
  for (let n = 1; n <= writesOfPickUp; n += 1) {
    const when = n % 2 === seed % 2 ? 'before' : 'after'
    // It may die before it is ready to be asked anything.
    const stack = await startStackChild(home, { n, when }).catch(() => null)
    if (stack === null) continue
    // How many writes it takes depends on where it was killed before.
    const pickedUp = backAtReview(home, id).catch(() => stack.ended)
    await bounded(`the kill ${when} write ${n} of picking up`, Promise.race([stack.ended, pickedUp]))
    await stack.kill()
  }
  const last = await startStackChild(home)
  expect((await last.api.get(id)).needs_you).toEqual(atGate.needs_you)
  await bounded('the end of the session', goOn(last, home, session))
  expect(last.faults()).toBe('')
  await last.kill()
})
