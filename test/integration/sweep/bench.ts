import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PutCommand } from '@aws-sdk/lib-dynamodb'
import { expect } from 'vitest'
import { newMemory, type SweepLine } from '../../../functions/sweep/round.ts'
import { type SweepOptions, sweep } from '../../../functions/sweep/sweep.ts'
import { startWorkers } from '../../../infra/local/workers.ts'
import { newId } from '../../../lib/ids.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import { verifyJournal } from '../../../lib/journal/verify.ts'
import { type Runtime, type SessionItem, sessionItemSchema } from '../../../lib/session/item.ts'
import type { State, Step } from '../../../lib/session/states.ts'
import { carryOut } from '../../../lib/store/effects.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { sessionPut } from '../../../lib/store/sessions.ts'
import { temporaryFolder } from '../../repositories.ts'
import { startPieces } from '../../support/pieces.ts'
import { at, epochMs, sessionAt, system } from '../../support/sessions.ts'

export type Id = { team: string; id: string }
export const minute = 60_000

/** Calls that change something outside of the process. */
const isWrite = (name: string) => /^(Put|Delete|Update|Start|Stop|SendTask|Copy)/.test(name)

let teams = 0
export const freshTeam = () => `team-${teams++}`

/** The sweep over the embedded services, with workers that are real processes and do nothing, on a clock of its own. */
export const startBench = async () => {
  const clock = { now: epochMs + 10_000 }
  const home = temporaryFolder()
  const pieces = await startPieces(home, { concurrency: 2, clock: () => clock.now })
  const program = join(home, 'worker.mjs')
  writeFileSync(program, 'process.stdin.resume()\n')
  const workers = startWorkers({ program, home, api: () => '', log: () => {}, onStopped: async () => {} })
  const platform: Platform = { ...pieces.platform, compute: workers }
  const lines: SweepLine[] = []
  const writes: string[] = []
  const calls: string[] = []
  const seen = <Answer>(name: string | undefined, call: () => Promise<Answer>): Promise<Answer> => {
    if (name !== undefined) calls.push(name)
    if (name !== undefined && isWrite(name)) writes.push(name)
    return call()
  }
  const { dynamo, s3, sfn } = pieces.clients
  const watch = { step: 'initialize', name: 'watch' } as const
  dynamo.middlewareStack.add(
    (next, { commandName }) =>
      (args) =>
        seen(commandName, () => next(args)),
    watch,
  )
  s3.middlewareStack.add(
    (next, { commandName }) =>
      (args) =>
        seen(commandName, () => next(args)),
    watch,
  )
  sfn.middlewareStack.add(
    (next, { commandName }) =>
      (args) =>
        seen(commandName, () => next(args)),
    watch,
  )

  const item = (id: Id) => platform.sessions.require(id)
  const events = async (id: Id) => platform.journals.after(await item(id), -1, 10_000)

  /** Writes a session as it stands, whether or not the lifecycle leads there. */
  const put = async (session: SessionItem): Promise<Id> => {
    await dynamo.send(new PutCommand(sessionPut(pieces.settings.table, session, 0)))
    return { team: session.team, id: session.id }
  }

  return {
    ...{ clock, pieces, platform, workers, lines, writes, calls, item, events, put },
    pass: (ms: number) => {
      clock.now += ms
    },

    /** A session somewhere, with its execution running and nothing half-done. */
    session: async (
      state: State,
      step: Step,
      {
        facts = [],
        runtime = {},
        team = freshTeam(),
      }: { facts?: Fact[]; runtime?: Partial<Runtime>; team?: string } = {},
    ): Promise<Id> => {
      const id = await put({ ...sessionAt(state, step, facts), team })
      await carryOut(platform, await item(id))
      await pieces.tokenOf(id.id)
      await platform.sessions.update(id, () => ({ actor: system, facts: [], looked: true, runtime }))
      return id
    },

    /** A worker that runs for a session, which need not know of it. */
    worker: async ({ team, id }: Id): Promise<string> => {
      const worker = newId('wrk')
      await workers.launch({ id: worker, team, session_id: id, token: '' })
      return worker
    },

    round: (options: SweepOptions = {}) =>
      sweep(platform, { memory: newMemory(), log: (line) => lines.push(line), ...options }),

    /** A round that repairs, and one right after it, which finds nothing to do: it writes nothing but that it looked. */
    repair: async (options: SweepOptions = {}): Promise<void> => {
      const memory = newMemory()
      const run = () => sweep(platform, { memory, log: (line) => lines.push(line), ...options })
      expect(await run()).toMatchObject({ faults: [] })
      const before = { writes: writes.length, lines: lines.length }
      expect(await run()).toMatchObject({ faults: [] })
      const written = writes.slice(before.writes)
      expect(written.filter((name) => name !== 'PutCommand' && name !== 'PutItemCommand')).toEqual([])
      expect(lines).toHaveLength(before.lines)
      const third = writes.length
      await run()
      expect(writes.slice(third)).toEqual([])
    },

    /** What the journal tells of repairs. */
    repairs: async (id: Id): Promise<string[]> =>
      (await events(id)).flatMap(({ type, data }) => (type === 'repaired' ? [String(data.what)] : [])),

    types: async (id: Id): Promise<string[]> => (await events(id)).map(({ type }) => type),

    /** Nothing is half-done, and the journal proves the item. */
    requireWhole: async (id: Id): Promise<void> => {
      const now = await item(id)
      expect(sessionItemSchema.parse(now)).toEqual(now)
      expect({ outbox: now.outbox, start: now.runtime.start_pending }).toEqual({ outbox: [], start: false })
      expect(
        verifyJournal(await events(id), { head: now.journal_head, document: now.document }),
      ).toMatchObject({ ok: true })
    },

    statusOf: (name: string) => platform.machine.status(platform.machine.executionArn(name)),
    /** Presses Stop as a person in the console would; resolves when it is seen. */
    stopExecution: async (name: string): Promise<void> => {
      const arn = platform.machine.executionArn(name)
      await platform.machine.stop(arn, 'Console', 'a person')
      await expect.poll(() => platform.machine.status(arn)).toBe('ABORTED')
    },

    close: async () => {
      await workers.close()
      await pieces.close()
    },
  }
}
export type Bench = Awaited<ReturnType<typeof startBench>>

/** A gate that opened when the clock began. */
export const gateFact = (kind: 'contract' | 'approval', deadline_at = at(7 * 24 * 3600_000)): Fact => ({
  type: 'gate_opened',
  data: {
    ...{ id: newId('gate'), kind, label: 'Decide', context: '', cause: 'road', unexpected: false },
    ...{ opened_at: at(0), deadline_at },
  },
})
