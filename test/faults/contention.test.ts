import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ListObjectsV2Command } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { newId } from '../../lib/ids.ts'
import { emptyHead } from '../../lib/journal/entry.ts'
import { objectKey } from '../../lib/store/keys.ts'
import { proveJournal } from '../../lib/store/proof.ts'
import { temporaryFolder } from '../repositories.ts'
import { type Pieces, startPieces } from '../support/pieces.ts'
import { creationChange, system } from '../support/sessions.ts'

const writers = 8
const appends = Number(process.env.GATEHOUSE_CONTENTION_APPENDS ?? 500)
/** How many acknowledgements lie between two kills, at least and at most. */
const between = { least: 200, most: 400 }
const seed = Number(process.env.GATEHOUSE_CONTENTION_SEED ?? Date.now() % 1_000_000)

/** Numbers from 0 to 1 that a seed fixes (mulberry32). */
const randomFrom = (start: number) => {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
const random = randomFrom(seed)
const nextKill = () => between.least + Math.floor(random() * (between.most - between.least))

const program = fileURLToPath(new URL('./contention-writer.ts', import.meta.url))
const saidSchema = z.strictObject({ acknowledged: z.number(), sequence: z.number() })

let pieces: Pieces
const home = temporaryFolder()
const id = { team: 'team', id: newId('ses') }
const running = new Set<{ kill: () => void }>()
/** Set when no writer is to be started any more. */
const end = { isOver: false }

beforeAll(async () => {
  pieces = await startPieces(home)
  const { item } = await pieces.platform.sessions.create(id, creationChange(id.id, id.team))
  await pieces.platform.sessions.commit(item, {
    ...{ actor: system, facts: [], runtime: { start_pending: false } },
  })
})
afterAll(async () => {
  end.isOver = true
  for (const { kill } of running) kill()
  await pieces.close()
})

/** Starts a writer in a process group of its own; its end with what it said about its faults. */
const startWriter = (
  name: string,
  from: number,
  count: number,
  acknowledged: (n: number, sequence: number) => void,
) => {
  const child = spawn(process.execPath, [program], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...{ PATH: process.env.PATH, HOME: home, NODE_COMPILE_CACHE: `${home}/compile-cache` },
      ...{ SETTINGS: JSON.stringify(pieces.settings), TEAM: id.team, SESSION: id.id },
      ...{ WRITER: name, FROM: String(from), COUNT: String(count) },
    },
  })
  const kill = () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, 'SIGKILL')
  }
  const one = { kill }
  running.add(one)
  const heard = { faults: '' }
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    heard.faults += text
  })
  createInterface({ input: child.stdout }).on('line', (line) => {
    const said = saidSchema.parse(JSON.parse(line))
    acknowledged(said.acknowledged, said.sequence)
  })
  const ended = once(child, 'close').then(() => {
    running.delete(one)
    return { killed: child.signalCode === 'SIGKILL', code: child.exitCode, faults: heard.faults }
  })
  return { kill, ended }
}

/** Follows the journal by its segments' names until told to stop; throws at the first gap, repeat or broken link. */
const followUntil = async (isOver: () => boolean) => {
  const prefix = objectKey.journalPrefix(id.team, id.id)
  let head = emptyHead
  for (;;) {
    const last = isOver()
    const { Contents: [early] = [] } = await pieces.clients.s3.send(
      new ListObjectsV2Command({
        ...{ Bucket: pieces.settings.bucket, Prefix: prefix, MaxKeys: 1 },
        StartAfter: objectKey.segment(id.team, id.id, head.sequence + 1),
      }),
    )
    const before = head.sequence
    for (;;) {
      const entries = await pieces.platform.journals.segment(id, head.sequence + 1)
      if (!entries) break
      for (const entry of entries) {
        if (entry.sequence !== head.sequence + 1 || entry.previous_hash !== head.hash)
          throw new Error(`entry ${entry.sequence} came behind ${head.sequence}`)
        head = { sequence: entry.sequence, hash: entry.hash }
      }
    }
    if (early?.Key !== undefined && head.sequence === before)
      throw new Error(`${early.Key} was there while there was nothing behind ${before}`)
    if (last) return
    await sleep(50)
  }
}

test(`${writers} processes append ${appends} entries each to one journal, and one of them is killed every few hundred (seed ${seed})`, async () => {
  const acknowledged = new Map<string, Set<number>>()
  const looks: Promise<void>[] = []
  const current = new Map<string, { kill: () => void }>()
  const state = { count: 0, killAt: nextKill(), kills: 0 }

  const heard = (name: string, n: number, sequence: number) => {
    acknowledged.get(name)?.add(n)
    state.count += 1
    // Now, and not only in the end: by then somebody else may have brought it there.
    if (state.count % 100 === 0)
      looks.push(
        pieces.platform.journals.after(id, sequence - 1, 1).then((found) => {
          if (found[0]?.sequence !== sequence)
            throw new Error(`${name}/${n} was acknowledged and is not in the journal`)
        }),
      )
    if (state.count < state.killAt) return
    state.killAt = state.count + nextKill()
    const victims = [...current.values()]
    victims[Math.floor(random() * victims.length)]?.kill()
  }

  /** A writer until all its appends are acknowledged; a killed one goes on behind the last that it may have begun. */
  const write = async (name: string) => {
    const done = new Set<number>()
    acknowledged.set(name, done)
    for (let from = 0; done.size < appends && !end.isOver; from += 10_000) {
      const writer = startWriter(name, from, appends - done.size, (n, sequence) => heard(name, n, sequence))
      current.set(name, writer)
      const { killed, code, faults } = await writer.ended
      current.delete(name)
      if (killed) state.kills += 1
      else if (code !== 0 || done.size < appends)
        throw new Error(`writer ${name} ended with ${code}: ${faults}`)
    }
  }

  const reading = followUntil(() => end.isOver)
  await Promise.all([
    reading,
    Promise.all(Array.from({ length: writers }, (_, index) => write(`w${index}`))).finally(() => {
      end.isOver = true
    }),
  ])
  await Promise.all(looks)

  // What a killed writer had decided and not brought there.
  const item = await pieces.platform.sessions.require(id)
  await pieces.platform.journals.drain(item)
  expect(await proveJournal(pieces.platform, id)).toMatchObject({ ok: true })
  const counts = new Map<string, number>()
  for (const { type, data } of await pieces.platform.journals.after(id, -1, Number.MAX_SAFE_INTEGER))
    if (type === 'error') counts.set(String(data.message), (counts.get(String(data.message)) ?? 0) + 1)
  expect([...counts].filter(([, count]) => count !== 1)).toEqual([])
  for (const [name, done] of acknowledged) {
    expect(done.size).toBe(appends)
    expect([...done].filter((n) => !counts.has(`${name}/${n}`))).toEqual([])
  }
  if (appends * writers > 2 * between.most) expect(state.kills).toBeGreaterThan(1)
}, 180_000)
