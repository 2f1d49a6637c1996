import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../lib/ids.ts'
import { encode, exportRecords, importRecords } from '../../../lib/journal/agent/interchange.ts'
import { materialise } from '../../../lib/journal/agent/state.ts'
import { typeIdOf, uuidOf } from '../../../lib/journal/agent/uuid.ts'
import { canonical, fromLine, type Statement } from '../../../lib/journal/entry.ts'
import { limits } from '../../../lib/limits.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { temporaryFolder } from '../../repositories.ts'
import { sessionThat, stated, store, theEnd } from '../../support/finished.ts'
import { type Api, apiOver } from '../../support/import-api.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { history, historyNames } from '../../unit/journal/agent/fixtures.ts'
import { type Dice, id, moveCount, session, time, userSays, walk } from '../../unit/journal/agent/walk.ts'

let source: Pieces
let target: Pieces
beforeAll(async () => {
  const folder = temporaryFolder()
  ;[source, target] = await Promise.all([startPieces(`${folder}/a`), startPieces(`${folder}/b`)])
}, 60_000)
afterAll(() => Promise.all([source.close(), target.close()]))

let teams = 0
const freshTeam = () => `team-${teams++}`

const start = {
  ...{ repo: 'https://example.com/repo', intent: 'Go on', engine_command: 'true' },
  labels: { from: 'elsewhere' },
}
const asRecords = { kind: 'records', start }

/** Lines of a session with an id of its own: one that was used before can't be imported again. */
const fresh = (lines: readonly string[]): string[] => {
  const [old, id] = [uuidOf(session), uuidOf(newId('ses'))]
  return lines.map((line) => line.replaceAll(old, id))
}
const linesOf = (name: string): string[] => {
  const exported = exportRecords(history(name))
  if (!exported.ok) throw new Error('it can be exported')
  return fresh(exported.lines)
}
const textOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

const importLines = async (api: Api, lines: readonly string[]) =>
  api.run(await api.upload(textOf(lines)), asRecords)

const recordsOf = async (api: Api, sessionId: unknown): Promise<string> => {
  const answer = await api.call(`/v1/sessions/${sessionId}/records`)
  expect(answer.status, answer.bytes.toString()).toBe(200)
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson')
  return answer.bytes.toString()
}

const entriesOf = async ({ platform }: Pieces, item: { team: string; id: string }) => {
  const entries = []
  for await (const lines of platform.journals.segments(item)) entries.push(...lines.map(fromLine))
  return entries
}

describe('records in the interchange form', () => {
  it.each(historyNames)(
    'of the session %s begin a new one, and come out of it line for line',
    async (name) => {
      const team = freshTeam()
      const api = await apiOver(target, team, 'operator')
      const lines = linesOf(name)
      const answer = await importLines(api, lines)
      expect(answer.status, answer.bytes.toString()).toBe(201)
      const sessionId = String(answer.json.id)
      expect(uuidOf(sessionId)).toBe(JSON.parse(lines[0] ?? '').sessionId)
      expect(answer.headers.get('location')).toBe(`/v1/sessions/${sessionId}`)
      expect(answer.json).toMatchObject({ state: 'created', intent: 'Go on', labels: { from: 'elsewhere' } })
      expect(await recordsOf(api, sessionId)).toBe(textOf(lines))
      expect(await proveJournal(target.platform, { team, id: sessionId })).toMatchObject({ ok: true })
      expect(api.faults).toEqual([])
    },
  )

  it('keep ids, times, causes, metadata and branches, and what they come to', async () => {
    const team = freshTeam()
    const api = await apiOver(target, team)
    const [first, second, ...rest] = linesOf('settled').map((line) => JSON.parse(line))
    const more = {
      causationId: first.recordId,
      correlationId: '0195a0b1-5e00-7000-8000-00000000aaaa',
      metadata: { 'com.example.note': { __proto: 1, n: 1.5 } },
    }
    const created = {
      ...first,
      metadata: { 'com.example.first': 1 },
      payload: { ...first.payload, metadata: { 'com.example.made': 'elsewhere' } },
    }
    const { payload, ...stamp } = second
    const { payload: named, ...place } = created
    const lines = [{ ...place, payload: named }, { ...stamp, ...more, payload }, ...rest].map((one) =>
      JSON.stringify(one),
    )
    const answer = await importLines(api, lines)
    expect(answer.status, answer.bytes.toString()).toBe(201)
    const item = { team, id: String(answer.json.id) }
    expect(
      (await recordsOf(api, item.id))
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(lines.map((line) => JSON.parse(line)))
    const [entry, caused] = await entriesOf(target, item)
    expect(entry).toMatchObject({
      type: 'session_created',
      time: first.timestamp,
      actor: { kind: 'person', id: 'ada' },
    })
    expect(caused?.causation_id).toBe(entry?.id)
    const state = await target.platform.states.at(
      await target.platform.sessions.require(item),
      lines.length - 1,
    )
    expect(materialise(state.agent)).toMatchObject({
      metadata: { 'com.example.made': 'elsewhere' },
      configuration: { profile_id: first.payload.profileId },
    })
    expect(state.document.engine).toBe('external:command')
  })

  it('begin a session that starts like any other', async () => {
    const api = await apiOver(target, freshTeam())
    const lines = linesOf('asked')
    const id = String((await importLines(api, lines)).json.id)
    expect(await target.tokenOf(id)).toMatch(/\S/)
    expect(target.startsOf(id)).toBe(1)
    const { json } = await api.call(`/v1/sessions/${id}/events?types=engine_selected`)
    expect(json.data).toMatchObject([{ sequence: lines.length }])
    expect((await api.call(`/v1/sessions/${id}/cancel`, {})).status).toBe(200)
    expect(await recordsOf(api, id)).toBe(textOf(lines))
  })

  it('of many and of large data are kept in segments and artifacts, and come out as they were', async () => {
    const team = freshTeam()
    const api = await apiOver(target, team)
    const [first = ''] = linesOf('created')
    const session_id = typeIdOf('ses', JSON.parse(first).sessionId)
    const large = 'é'.repeat(limits.journalEntry)
    const messages = Array.from({ length: 2 * limits.journalBatch.entries + 7 }, (_, n) =>
      encode({
        ...{ sequence: n + 1, id: id('evt', n + 1), session_id, branch: 'main', time: time(n) },
        type: 'message_committed',
        data: {
          message:
            n % 100 === 3
              ? { ...userSays(n), content: [{ type: 'text', text: `${n}${large}` }] }
              : userSays(n),
        },
      }),
    )
    const lines = [first, ...messages]
    const answer = await importLines(api, lines)
    expect(answer.status, answer.bytes.toString()).toBe(201)
    const item = { team, id: String(answer.json.id) }
    const entries = await entriesOf(target, item)
    expect(entries.filter(({ data_ref }) => data_ref)).toHaveLength(5)
    for (const entry of entries)
      expect(Buffer.byteLength(canonical(entry))).toBeLessThan(2 * limits.journalEntry)
    expect(await recordsOf(api, item.id)).toBe(textOf(lines))
    expect(await proveJournal(target.platform, item)).toMatchObject({ ok: true, entries: lines.length + 1 })
    const page = await api.call(`/v1/sessions/${item.id}/events?after=250&limit=3`)
    expect(page.json.data).toMatchObject([{ sequence: 251 }, { sequence: 252 }, { sequence: 253 }])
  })

  it('that are there already begin nothing, and a repeat is answered as the first', async () => {
    const api = await apiOver(target, freshTeam())
    const lines = linesOf('settled')
    const importId = await api.upload(textOf(lines))
    const both = await Promise.all([api.run(importId, asRecords), api.run(importId, asRecords)])
    expect(both.map(({ status, json }) => [status, json.id])).toEqual([
      [201, both[0]?.json.id],
      [201, both[0]?.json.id],
    ])
    const other = await importLines(api, lines)
    expect(other.json).toMatchObject({ status: 409, code: 'already_exists' })
    const elsewhere = await importLines(await apiOver(target, freshTeam()), lines)
    expect(elsewhere.json).toMatchObject({ status: 409, code: 'already_exists' })
    expect(await recordsOf(api, both[0]?.json.id)).toBe(textOf(lines))
  })
})

describe('refused are records', () => {
  const change = (at: number, changed: (wire: Record<string, unknown>) => object) =>
    linesOf('settled').map((line, place) => (place === at ? JSON.stringify(changed(JSON.parse(line))) : line))
  const settled = linesOf('settled')
  it.each<[string, readonly string[], number, string, RegExp]>([
    [
      'of a later version',
      change(3, (wire) => ({ ...wire, protocolVersion: '2.0' })),
      4,
      'unsupported_version',
      /version 2\.0/,
    ],
    [
      'of a type that nobody knows',
      change(3, (wire) => ({ ...wire, type: 'tool_called' })),
      4,
      'unsupported_type',
      /tool_called/,
    ],
    [
      'of a type that only we know',
      change(3, (wire) => ({ ...wire, type: 'approval_expired' })),
      4,
      'unsupported_type',
      /approval_expired/,
    ],
    ['that are not valid', change(2, (wire) => ({ ...wire, payload: {} })), 3, 'invalid', /payload/],
    ['with a line that is no JSON', settled.toSpliced(1, 0, '{'), 2, 'invalid', /not a JSON object/],
    ['with an empty line', settled.toSpliced(1, 0, ''), 2, 'invalid', /not a JSON object/],
    ['with one left out', settled.toSpliced(2, 1), 3, 'out_of_place', /SequenceMismatch/],
    ['with one twice', settled.toSpliced(2, 0, settled[1] ?? ''), 3, 'out_of_place', /DuplicateRecord/],
    ['that do not begin', settled.slice(1), 1, 'out_of_place', /SequenceMismatch/],
    [
      'of two sessions',
      change(2, (wire) => ({ ...wire, sessionId: uuidOf(newId('ses')) })),
      3,
      'out_of_place',
      /SessionMismatch/,
    ],
    ['that are none', [], 1, 'invalid', /no records/],
  ])('%s', async (_, lines, line, outcome, detail) => {
    const team = freshTeam()
    const api = await apiOver(target, team)
    const answer = await importLines(api, lines)
    expect(answer.json).toMatchObject({ status: 422, code: 'invalid_records', line, outcome })
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(answer.json.detail).toMatch(detail)
    const left = []
    for (const prefix of [`teams/${team}/`, `imports/${team}/`])
      for await (const key of target.platform.blobs.list(prefix)) left.push(key)
    expect(left).toEqual([])
    expect((await api.call('/v1/sessions')).json.data).toEqual([])
    expect(api.faults).toEqual([])
  })

  it('that are not UTF-8', async () => {
    const api = await apiOver(target, freshTeam())
    const bytes = Buffer.concat([Buffer.from(textOf(settled.slice(0, 2))), Buffer.from([0xc3, 0x28, 0x0a])])
    const answer = await api.run(await api.upload(bytes), asRecords)
    expect(answer.json).toMatchObject({ code: 'invalid_records', outcome: 'invalid' })
  })

  it('whose start could not be kept, which leaves the upload for a better one', async () => {
    const api = await apiOver(target, freshTeam(), 'operator')
    const importId = await api.upload(textOf(settled))
    const starts: [object, number, string][] = [
      [{ ...start, repo: 'http://example.com/x' }, 422, 'repository_refused'],
      [{ ...start, engine: 'native' }, 422, 'engine_unavailable'],
      [{ ...start, model: 'x' }, 422, 'not_available'],
      [{ ...start, contract: { checks: [] } }, 422, 'invalid_contract'],
      [{ ...start, yes_ship: true }, 403, 'forbidden'],
      [{ ...start, intnet: 'x' }, 422, 'invalid_request'],
    ]
    for (const [wrong, status, code] of starts)
      expect((await api.run(importId, { kind: 'records', start: wrong })).json).toMatchObject({
        status,
        code,
      })
    expect((await api.run(importId, asRecords)).status).toBe(201)
  })
})

const conformance = z
  .record(z.string(), z.array(z.record(z.string(), z.unknown())))
  .parse(JSON.parse(readFileSync(new URL('../../conformance/histories.json', import.meta.url), 'utf8')))

it('the conformance histories come back as the JSON that they are written in', async () => {
  const longest = Object.entries(conformance).toSorted(([, a], [, b]) => b.length - a.length)
  for (const [name, wire] of longest.slice(0, 3)) {
    const api = await apiOver(target, freshTeam())
    const lines = fresh(wire.map((one) => JSON.stringify(one)))
    const answer = await importLines(api, lines)
    expect(answer.status, name).toBe(201)
    const back = (await recordsOf(api, answer.json.id)).trimEnd().split('\n')
    expect(back.map((line) => JSON.parse(line))).toEqual(lines.map((line) => JSON.parse(line)))
  }
})

describe('an export of records', () => {
  it('of a session of ours tells its engine as the profile, and its labels as metadata', async () => {
    const team = freshTeam()
    const api = await apiOver(target, team)
    const { json } = await api.call('/v1/sessions', start)
    const [line = '', ...none] = (await recordsOf(api, json.id)).trimEnd().split('\n')
    expect(none).toEqual([])
    expect(JSON.parse(line)).toMatchObject({
      ...{ type: 'session_created', sequence: '0', sessionId: uuidOf(String(json.id)) },
      payload: { profileId: 'external/command', metadata: { 'dev.gatehouse.labels': { from: 'elsewhere' } } },
    })
  })

  it('refuses what protocol 1.0 has no place for, by its name and place', async () => {
    const team = freshTeam()
    const pending = history('approval_pending')
    const last = pending.at(-1)
    if (last?.type !== 'approval_requested' && last?.type !== 'turn_checkpointed') throw new Error('it waits')
    const asked = pending.find((one) => one.type === 'approval_requested')
    if (asked?.type !== 'approval_requested') throw new Error('it was asked')
    const expired: Statement = {
      type: 'approval_expired',
      data: { approval_id: asked.data.approval_id },
      context: { id: newId('evt'), time: asked.data.expires_at, branch: asked.branch },
    }
    const [first] = pending
    const item = await store(
      source,
      sessionThat(
        { team, id: first?.session_id ?? '' },
        [{ type: 'error', data: { message: 'x' } }, ...stated(pending), expired, ...theEnd],
        { id: first?.id ?? '', time: first?.time ?? '' },
      ),
    )
    const api = await apiOver(source, team, 'viewer')
    const answer = await api.call(`/v1/sessions/${item.id}/records`)
    expect(answer.json).toMatchObject({
      ...{ status: 409, code: 'not_exportable' },
      record: { type: 'approval_expired', sequence: pending.length + 1, exportable: pending.length },
    })
  })
})

const dice = fc.record({
  move: fc.nat({ max: moveCount - 1 }),
  pick: fc.nat({ max: 1000 }),
  later: fc.nat({ max: 1000 }),
})
const roads = [
  [1, 2, 2, 3, 3, 7, 7, 8, 8, 11, 11],
  [1, 2, 3, 4, 5, 7, 8, 11],
  [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 6, 8, 11],
]
const road: fc.Arbitrary<Dice[]> = fc
  .record({ moves: fc.constantFrom(...roads), pick: fc.nat({ max: 1000 }), later: fc.nat({ max: 1000 }) })
  .map(({ moves, pick, later }) => moves.map((move) => ({ move, pick, later })))
const throws = fc
  .array(
    fc.oneof(
      dice.map((one) => [one]),
      road,
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.flat())

describe('whatever happened in it, a session', () => {
  it('comes out of its archive elsewhere with the same bytes and the same fold', async () => {
    await fc.assert(
      fc.asyncProperty(throws, fc.array(fc.tuple(fc.nat(), fc.string())), async (rolls, events) => {
        const team = freshTeam()
        const { records } = walk(rolls)
        const statements = stated(records)
        for (const [place, message] of events)
          statements.splice(place % (statements.length + 1), 0, { type: 'error', data: { message } })
        const first = { id: id('evt', 0), time: time(0) }
        const item = await store(
          source,
          sessionThat({ team, id: session }, [...statements, ...theEnd], first),
        )
        const [here, there] = [await apiOver(source, team), await apiOver(target, team)]
        const archive = await here.call(`/v1/sessions/${session}/archive`)
        const answer = await there.run(await there.upload(archive.bytes))
        expect(answer.status, answer.bytes.toString()).toBe(201)
        const [was, is] = [await entriesOf(source, item), await entriesOf(target, item)]
        expect(is.map(canonical)).toEqual(was.map(canonical))
        expect(await proveJournal(target.platform, item)).toMatchObject({ ok: true, head: item.journal_head })
        const fold = async ({ platform }: Pieces) => {
          const { document, agent } = await platform.states.at(item, item.journal_head.sequence)
          return canonical([document, materialise(agent)])
        }
        expect(await fold(target)).toBe(await fold(source))
        expect((await there.call(`/v1/sessions/${session}/archive`)).bytes).toEqual(archive.bytes)
      }),
      { numRuns: 6 },
    )
  }, 60_000)

  it('comes back line for line from its records, as far as they can be told', async () => {
    await fc.assert(
      fc.asyncProperty(throws, async (rolls) => {
        const { records } = walk(rolls)
        const exported = exportRecords(records)
        const lines = fresh(
          exported.ok ? exported.lines : records.slice(0, exported.refusal.exportable).map(encode),
        )
        const api = await apiOver(target, freshTeam())
        const answer = await importLines(api, lines)
        expect(answer.status, answer.bytes.toString()).toBe(201)
        // The order of an object's members says nothing, and is the schemas' on the way out.
        expect(await recordsOf(api, answer.json.id)).toBe(textOf(importRecords(lines).records.map(encode)))
      }),
      { numRuns: 6 },
    )
  }, 60_000)
})
