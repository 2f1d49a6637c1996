import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { temporaryFolder, type TestRepository } from '../repositories.ts'
import { openKept } from './kept.ts'
import { type StackChild, startStackChild } from './stack-child.ts'
import { trivialSession } from './trivial.ts'
import { requireWhole, seeThrough } from './whole.ts'
import type { When } from './write-seam.ts'

/** `every` kills at each write, before it and after it; else at every `step`-th moment, another set for each seed. */
const step = process.env.FAULTS === 'every' ? 1 : Number(process.env.FAULTS_STEP ?? 8)
const seed = Number(process.env.FAULTS_SEED ?? 3)
/** Two stacks at a time, each going from kill to kill on a folder of its own. */
const lanes = [0, 1].map((lane) => ({ lane, home: temporaryFolder() }))

const startedSchema = z.object({ id: z.string() })

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

describe(`the whole stack is killed at ${step === 1 ? 'every' : `each ${step}th moment around a`} write of a session`, () => {
  const dry: { writes: string[] } = { writes: [] }
  beforeAll(async () => {
    const home = temporaryFolder()
    const stack = await startStackChild(home)
    await stack.count()
    await runWhole(stack, home, newSession(home))
    dry.writes = await stack.writes()
    await stack.kill()
  })

  const moments = () =>
    dry.writes
      .flatMap((name, at) => (['before', 'after'] as const).map((when) => ({ n: at + 1, when, name })))
      .filter((_, at) => at % step === seed % step)

  test.concurrent.each(lanes)('and started again, as if nothing had happened ($lane)', { timeout: 600_000 }, async ({ lane, home }) => {
    const killed: string[] = []
    const failures: string[] = []
    let stack = await startStackChild(home)
    for (const { n, when, name } of moments().filter((_, at) => at % lanes.length === lane)) {
      const at = `${when} write ${n} (${name})`
      const began = performance.now()
      await stack.arm(n, when)
      const session = newSession(home)
      const run = runWhole(stack, home, session).catch(() => {})
      await bounded(`the session or its end, killed ${at}`, Promise.race([stack.ended, run]))
      await stack.kill()
      const where = await stack.ended
      if (where !== null) killed.push(where)
      await run
      const again = performance.now()
      stack = await startStackChild(home)
      const up = performance.now()
      try {
        await bounded(`the end of the session that was killed ${at}`, goOn(stack, home, session))
      } catch (error) {
        failures.push(`${at}: ${error instanceof Error ? error.message : error}\n${stack.faults()}`)
      }
      if (process.env.FAULTS_LOG) console.log(lane, at, where, session.id, [again - began, up - again, performance.now() - up].map(Math.round))
    }
    await stack.kill()
    expect(failures).toEqual([])
    expect(killed.length).toBeGreaterThan(0)
  })
})
