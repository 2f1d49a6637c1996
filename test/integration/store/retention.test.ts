import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GetCommand, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startWorkers } from '../../../infra/local/workers.ts'
import { newId } from '../../../lib/ids.ts'
import { stateSchema, terminalStates } from '../../../lib/session/states.ts'
import { itemKey, objectKey } from '../../../lib/store/keys.ts'
import type { Compute } from '../../../lib/store/platform.ts'
import { finishRemoval, overLimit, overRetention, removeSession } from '../../../lib/store/retention.ts'
import type { Finished } from '../../../lib/store/session-removals.ts'
import { createSessions } from '../../../lib/store/sessions.ts'
import { fetchMirror, pinBase, pinnedMirror, unpinBase } from '../../../lib/workspace/mirror.ts'
import { parseRepository } from '../../../lib/workspace/repository-address.ts'
import { makeRepository, temporaryFolder } from '../../repositories.ts'
import { dynamoBackends, openTable } from '../../support/dynamo.ts'
import { Crash, crashAt, type Pieces, startPieces } from '../../support/pieces.ts'
import { at, creationChange, epochMs } from '../../support/sessions.ts'

const dayMs = 24 * 3600_000
let teams = 0
const freshTeam = () => `team-${teams++}`

describe('what is over the limit', () => {
  const finishedArb = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 20 }).map((ages) =>
    ages.map(
      (age, n): Finished => ({
        ...{ team: 'team', id: `ses_${n}`, revision: 1 },
        finished_at: new Date(epochMs - age * dayMs).toISOString(),
      }),
    ),
  )

  it('is what is too old, or has enough newer ones, oldest first; and 0 is no limit', () => {
    const finished = [3, 31, 1, 2].map((age, n) => ({
      ...{ team: 'team', id: `ses_${n}`, revision: 1 },
      finished_at: new Date(epochMs - age * dayMs).toISOString(),
    }))
    const over = (sessions: number, days: number) =>
      overLimit(finished, { sessions, days }, epochMs).map(({ id }) => id)
    expect(over(200, 30)).toEqual(['ses_1'])
    expect(over(2, 30)).toEqual(['ses_1', 'ses_0'])
    expect(over(2, 0)).toEqual(['ses_1', 'ses_0'])
    expect(over(0, 2)).toEqual(['ses_1', 'ses_0'])
    expect(over(0, 0)).toEqual([])
    expect(over(4, 31)).toEqual([])
  })

  it('among some is over the limit among all', () => {
    fc.assert(
      fc.property(finishedArb, fc.nat({ max: 20 }), fc.nat({ max: 8 }), (finished, some, sessions) => {
        const retention = { sessions, days: 30 }
        const all = overLimit(finished, retention, epochMs)
        const keptTimes = finished.filter((one) => !all.includes(one)).map((one) => one.finished_at)
        if (sessions > 0) expect(keptTimes.length).toBeLessThanOrEqual(sessions)
        const times = all.map((one) => one.finished_at)
        expect(times).toEqual(times.toSorted())
        // Which of two that finished at one moment goes first is anyone's choice.
        const distinct = finished.filter(
          (one, n) => finished.findIndex((other) => other.finished_at === one.finished_at) === n,
        )
        const ofAll = overLimit(distinct, retention, epochMs)
        for (const one of overLimit(distinct.slice(0, some), retention, epochMs)) expect(ofAll).toContain(one)
      }),
    )
  })
})

describe.each(dynamoBackends)('finished sessions on $name', (backend) => {
  let open: Awaited<ReturnType<typeof openTable>>
  let sessions: ReturnType<typeof createSessions>
  beforeAll(async () => {
    open = await openTable(backend)
    sessions = createSessions(open.dynamo, open.table, () => epochMs, open.journals)
  }, 60_000)
  afterAll(() => open.close())

  type Row = { document?: object; runtime?: object; more?: object }
  /** A row that shows just what retention looks at, and parses as no session. */
  const putRow = async (team: string, { document, runtime, more }: Row = {}) => {
    const id = newId('ses')
    const Item = {
      ...itemKey.session(team, id),
      ...{ revision: 7, outbox: [] },
      document: { state: 'merged', updated_at: at(0), ...document },
      runtime: { settled: true, start_pending: false, answers: [], ...runtime },
      ...more,
    }
    await open.dynamo.send(new PutCommand({ TableName: open.table, Item }))
    return { team, id, revision: 7 }
  }
  const finishedIds = async (team: string, limit = 100) =>
    (await sessions.finished(team, limit)).map(({ id }) => id)

  it('are the ended and settled ones with nothing on its way out and no retained work', async () => {
    const team = freshTeam()
    const found = [
      ...(await Promise.all(terminalStates.map((state) => putRow(team, { document: { state } })))),
      await putRow(team, { document: { retained_work: false } }),
    ]
    const exempt = [
      await putRow(team, { document: { retained_work: true } }),
      await putRow(team, { runtime: { settled: false } }),
      await putRow(team, { runtime: { start_pending: true } }),
      await putRow(team, { runtime: { answers: [{}] } }),
      await putRow(team, { more: { outbox: [{ sequence: 0, segment: 0, line: '{}' }] } }),
      await putRow(team, { more: { removing_at: at(0) } }),
      await putRow(team, { more: { document: 'damaged' } }),
      await putRow(team, { more: { runtime: null } }),
    ]
    const live = stateSchema.options.filter((state) => !terminalStates.some((ended) => ended === state))
    for (const state of live) exempt.push(await putRow(team, { document: { state } }))
    await putRow(freshTeam())
    expect((await finishedIds(team)).toSorted()).toEqual(found.map(({ id }) => id).toSorted())
    for (const session of exempt) expect(await sessions.beginRemoval(session)).toBe(false)
    for (const session of found) expect(await sessions.beginRemoval(session)).toBe(true)
    expect(await finishedIds(team)).toEqual([])
  })

  it('are found behind any number of large rows, and no more of them than asked for', async () => {
    const team = freshTeam()
    const padding = 'x'.repeat(300_000)
    for (let n = 0; n < 5; n++) await putRow(team, { document: { state: 'running' }, more: { padding } })
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push((await putRow(team, { more: { padding } })).id)
    expect(await finishedIds(team)).toEqual(ids)
    expect(await finishedIds(team, 3)).toEqual(ids.slice(0, 3))
  })

  it('that are over the limit go, a few at a time, until the newest are left', async () => {
    const team = freshTeam()
    const rows: { id: string; age: number }[] = []
    for (const age of [4, 9, 2, 7, 1, 8, 3, 6, 5, 40, 0]) {
      const { id } = await putRow(team, { document: { updated_at: at(-age * dayMs) } })
      rows.push({ id, age })
    }
    await putRow(team, { document: { retained_work: true, updated_at: at(-90 * dayMs) } })
    const removed: string[] = []
    const look = (keep: number) =>
      overRetention({ sessions, clock: () => epochMs }, team, { sessions: keep, days: 30 }, 2)
    for (let over = await look(4); over.length > 0; over = await look(4)) {
      expect(over.length).toBeLessThanOrEqual(2)
      for (const session of over) {
        expect(await sessions.beginRemoval(session)).toBe(true)
        removed.push(session.id)
      }
    }
    const gone = rows.filter(({ id }) => removed.includes(id)).map(({ age }) => age)
    expect(gone.toSorted((a, b) => a - b)).toEqual([4, 5, 6, 7, 8, 9, 40])
  })
})

describe('the removal of a session', () => {
  let pieces: Pieces
  let compute: Compute
  let repository: ReturnType<typeof makeRepository>
  let mirror: string
  const home = { path: '' }
  beforeAll(async () => {
    const folder = temporaryFolder()
    pieces = await startPieces(folder, { clock: () => epochMs })
    home.path = join(folder, 'home')
    compute = startWorkers({
      program: '',
      home: home.path,
      api: () => '',
      log: () => {},
      onStopped: async () => {},
    })
    repository = makeRepository({ directory: join(folder, 'repository') })
    const fetched = await fetchMirror({ home: join(home.path, 'worker'), repository: addressOf() })
    if (!fetched.ok) throw new Error(fetched.detail)
    mirror = fetched.directory
  }, 60_000)
  afterAll(() => pieces.close())

  const addressOf = () => parseRepository(repository.directory, { allowLocal: true })
  const logOf = (id: string) => join(home.path, 'logs', `${id}.log`)
  const parts = () => ({ ...pieces.platform, compute })
  const keysOf = ({ team, id }: { team: string; id: string }) => [
    ...[0, 1, 2].map((n) => objectKey.segment(team, id, n)),
    objectKey.snapshot(team, id, 1),
    objectKey.bundle(team, id, 'one.bundle'),
    ...['patch', 'check-1.txt', 'check-1'].map((name) => objectKey.artifact(team, id, name)),
  ]

  /** A session that has ended, with something of every kind that belongs to one. */
  const ended = async (team: string) => {
    const id = newId('ses')
    const { dynamo } = pieces.clients
    const change = creationChange(id, team, { repo: repository.directory })
    const { item } = await pieces.platform.sessions.create({ team, id }, change)
    await dynamo.send(
      new UpdateCommand({
        TableName: pieces.settings.table,
        Key: itemKey.session(team, id),
        UpdateExpression:
          'SET document.#state = :state, runtime.settled = :true, runtime.start_pending = :false, outbox = :none REMOVE due_at, due_shard',
        ExpressionAttributeNames: { '#state': 'state' },
        ExpressionAttributeValues: { ':state': 'merged', ':true': true, ':false': false, ':none': [] },
      }),
    )
    await Promise.all(keysOf({ team, id }).map((key) => pieces.platform.blobs.put(key, key)))
    await pinBase(mirror, id, repository.head)
    writeFileSync(logOf(id), 'said')
    return { team, id, revision: item.revision }
  }
  type Ended = Awaited<ReturnType<typeof ended>>

  const rowOf = async ({ team, id }: Ended) => {
    const Key = itemKey.session(team, id)
    const answer = await pieces.clients.dynamo.send(
      new GetCommand({ TableName: pieces.settings.table, Key, ConsistentRead: true }),
    )
    return answer.Item
  }
  const listed = async (prefix: string): Promise<string[]> => {
    const keys: string[] = []
    for await (const key of pieces.platform.blobs.list(prefix)) keys.push(key)
    return keys
  }
  const dueRows = async ({ id }: Ended) =>
    (await pieces.platform.sessions.due(epochMs, 1000)).filter((row) => row.id === id)
  /** What there is of a session, anywhere. */
  const traces = async (session: Ended) => {
    const pinned = {
      home: join(home.path, 'worker'),
      ...{ repository: addressOf(), sessionId: session.id, commit: repository.head },
    }
    return {
      row: await rowOf(session),
      objects: await listed(`teams/${session.team}/sessions/${session.id}/`),
      mirror: await pinnedMirror(pinned),
      log: existsSync(logOf(session.id)),
      due: await dueRows(session),
    }
  }
  const none = { row: undefined, objects: [], mirror: null, log: false, due: [] }

  it('takes everything that belongs to it, and nothing of its neighbours', async () => {
    const team = freshTeam()
    const session = await ended(team)
    const neighbours = [await ended(team), await ended(`${team}x`)]
    const before = await Promise.all(neighbours.map(traces))
    expect(before.map(({ objects }) => objects.toSorted())).toEqual(
      neighbours.map((one) => keysOf(one).toSorted()),
    )
    const longer = objectKey.snapshot(team, `${session.id}0`, 1)
    await pieces.platform.blobs.put(longer, 'x')
    expect(await removeSession(parts(), session)).toBe(true)
    expect(await traces(session)).toEqual(none)
    expect(await Promise.all(neighbours.map(traces))).toEqual(before)
    expect(await pieces.platform.blobs.get(longer)).toBe('x')
    expect(await removeSession(parts(), session)).toBe(false)
  })

  it('leaves all of a session that changed since it was seen, or that may not be removed', async () => {
    const session = await ended(freshTeam())
    const before = await traces(session)
    expect(await removeSession(parts(), { ...session, revision: session.revision + 1 })).toBe(false)
    expect(await finishRemoval(parts(), session)).toBe(false)
    expect(await traces(session)).toEqual(before)

    const id = newId('ses')
    const live = await pieces.platform.sessions.create(
      { team: session.team, id },
      creationChange(id, session.team),
    )
    expect(await removeSession(parts(), live.item)).toBe(false)
    expect(await pieces.platform.sessions.get(live.item)).toEqual(live.item)
  })

  it('is over for everyone else with its first write, also for who had read the session before', async () => {
    const { sessions } = pieces.platform
    const session = await ended(freshTeam())
    const before = await sessions.require(session)
    const change = { actor: { kind: 'system' as const, id: 'test' }, facts: [] }
    expect(await sessions.beginRemoval(session)).toBe(true)

    expect(await sessions.get(session)).toBeNull()
    await expect(sessions.update(session, () => change)).rejects.toMatchObject({ code: 'not_found' })
    await expect(sessions.commit(before, change)).rejects.toMatchObject({ code: 'conflict' })
    const again = sessions.create(session, creationChange(session.id, session.team))
    await expect(again).rejects.toMatchObject({ code: 'not_found' })
    const page = await sessions.page(session.team, { limit: 10, before: null, needsYou: false })
    expect(page.items).toEqual([])
    expect(await sessions.finished(session.team, 10)).toEqual([])
    expect(await dueRows(session)).toHaveLength(1)

    expect(await finishRemoval(parts(), session)).toBe(true)
    expect(await traces(session)).toEqual(none)
  })

  it('is finished also where the row tells nothing of its session any more', async () => {
    const session = await ended(freshTeam())
    await pieces.platform.sessions.beginRemoval(session)
    await pieces.clients.dynamo.send(
      new UpdateCommand({
        TableName: pieces.settings.table,
        Key: itemKey.session(session.team, session.id),
        UpdateExpression: 'SET document = :damaged',
        ExpressionAttributeValues: { ':damaged': 'damaged' },
      }),
    )
    expect(await finishRemoval(parts(), session)).toBe(true)
    expect(await traces(session)).toMatchObject({ row: undefined, objects: [], due: [] })
  })

  it('may be done by several at once', async () => {
    const session = await ended(freshTeam())
    const neighbour = await ended(session.team)
    const before = await traces(neighbour)
    await Promise.all([1, 2, 3, 4].map(() => removeSession(parts(), session)))
    expect(await traces(session)).toEqual(none)
    expect(await traces(neighbour)).toEqual(before)
  })

  it.each(['before', 'after'] as const)(
    'leaves nothing of it and all of its neighbour when a repeat follows a crash %s any of its calls',
    async (when) => {
      // What workers keep is behind a call of its own, so that the crash comes between everything else and it as well.
      const interrupted = {
        ...parts(),
        compute: {
          ...compute,
          forget: async (session: { repo: string; session_id: string }) => {
            await pieces.platform.blobs.exists('before')
            await compute.forget(session)
            await pieces.platform.blobs.exists('after')
          },
        },
      }
      const team = freshTeam()
      const neighbour = await ended(team)
      const before = await traces(neighbour)
      for (let n = 1; ; n++) {
        const session = await ended(team)
        const crash = crashAt(pieces.clients, n, when)
        const removal = removeSession(interrupted, session)
        await removal.catch((error) => {
          if (!(error instanceof Crash)) throw error
        })
        const { fired } = crash
        crashAt(pieces.clients, 0, when)
        if (fired) {
          // A sweep knows of it by its row alone.
          for (const row of await dueRows(session)) await finishRemoval(interrupted, row)
          await removeSession(interrupted, session)
        }
        expect(await traces(session), `call ${n}`).toEqual(none)
        expect(await traces(neighbour), `call ${n}`).toEqual(before)
        if (!fired) {
          expect(n).toBe(9)
          return
        }
      }
    },
    60_000,
  )

  it('forgets what workers keep where nothing is kept, and only of the session named', async () => {
    const [one, other] = [newId('ses'), newId('ses')]
    await pinBase(mirror, other, repository.head)
    writeFileSync(logOf(other), 'said')
    const gone = join(repository.directory, 'nowhere')
    await compute.forget({ repo: gone, session_id: one })
    await compute.forget({ repo: repository.directory, session_id: one })
    expect(existsSync(logOf(other))).toBe(true)
    const worker = { home: join(home.path, 'worker'), repository: addressOf(), sessionId: other }
    expect(await pinnedMirror({ ...worker, commit: repository.head })).toBe(mirror)
    await unpinBase(worker)
    expect(await pinnedMirror({ ...worker, commit: repository.head })).toBeNull()
  })

  it('lists and removes more objects than one call takes, and only those of the folder', async () => {
    const { blobs } = pieces.platform
    const keys = Array.from({ length: 1_205 }, (_, n) => `many/folder/${n % 3}/${String(n).padStart(5, '0')}`)
    for (let from = 0; from < keys.length; from += 100)
      await Promise.all(keys.slice(from, from + 100).map((key) => blobs.put(key, 'x')))
    await blobs.put('many/folder2/key', 'x')
    await blobs.put('many/folder.txt', 'x')
    expect((await listed('many/folder/')).toSorted()).toEqual(keys.toSorted())
    await blobs.removeAll('many/folder/')
    expect(await listed('many/folder/')).toEqual([])
    await blobs.removeAll('many/folder/')
    expect(await listed('many/')).toEqual(['many/folder.txt', 'many/folder2/key'])
    for (const prefix of ['', '/', 'many', '//'])
      await expect(blobs.removeAll(prefix)).rejects.toMatchObject({ code: 'internal' })
    expect(await listed('many/')).toHaveLength(2)
  }, 60_000)
})
