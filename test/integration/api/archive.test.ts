import { gunzipSync } from 'node:zlib'
import { unpackTar } from 'modern-tar'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import {
  canonical,
  type Entry,
  fromLine,
  hashOf,
  type Statement,
  toLine,
} from '../../../lib/journal/entry.ts'
import { limits } from '../../../lib/limits.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { finishRemoval, overRetention, removeSession } from '../../../lib/store/retention.ts'
import { temporaryFolder } from '../../repositories.ts'
import { madeOf, packed, rewritten } from '../../support/archives.ts'
import { sessionThat, store, theEnd } from '../../support/finished.ts'
import { apiOver } from '../../support/import-api.ts'
import { crashAt, type Pieces, startPieces } from '../../support/pieces.ts'
import { sha } from '../../support/sessions.ts'
import { userSays } from '../../unit/journal/agent/walk.ts'

/** Two services that know nothing of each other. */
let source: Pieces
let target: Pieces
let now = Date.now()
beforeAll(async () => {
  const folder = temporaryFolder()
  ;[source, target] = await Promise.all([
    startPieces(`${folder}/source`),
    startPieces(`${folder}/target`, { clock: () => now }),
  ])
}, 60_000)
afterAll(() => Promise.all([source.close(), target.close()]))

let teams = 0
const freshTeam = () => `team-${teams++}`

const bundle = 'the bytes of a bundle'
const said = { message: userSays(1) }

/** A finished session with a bundle, artifacts and data beside its journal. */
const finished = async (team: string, id = newId('ses')): Promise<SessionItem> => {
  const data_ref = await source.platform.payloads.store({ team, id }, said)
  const { blobs } = source.platform
  await blobs.put(objectKey.artifact(team, id, 'log.txt'), 'what a check printed')
  await blobs.put(objectKey.bundle(team, id, 'one.bundle'), bundle)
  const work: Statement[] = [
    { type: 'error', data: { message: 'seen' } },
    { type: 'message_committed', data: said, context: { data_ref } },
    {
      type: 'checkpoint_created',
      data: { id: 'one', commit: sha('c'), tree: sha('d'), bundle: 'one.bundle', bundle_sha256: null },
    },
  ]
  return store(source, sessionThat({ team, id }, [...work, ...theEnd]))
}

const whole = async ({ platform }: Pieces, item: { team: string; id: string }): Promise<string> => {
  let text = ''
  for await (const lines of platform.journals.segments(item))
    text += lines.map((line) => `${line}\n`).join('')
  return text
}

const objects = async ({ platform }: Pieces, prefix: string): Promise<string[]> => {
  const keys: string[] = []
  for await (const key of platform.blobs.list(prefix)) keys.push(key)
  return keys
}

/** The archive of a session at the source. */
const exported = async (item: SessionItem): Promise<Buffer> => {
  const api = await apiOver(source, item.team, 'viewer')
  const answer = await api.call(`/v1/sessions/${item.id}/archive`)
  expect(answer.status).toBe(200)
  return answer.bytes
}

/** The session at the target is the one at the source: its bytes, its fold, its document. */
const requireSame = async (item: SessionItem): Promise<void> => {
  const there = await target.platform.sessions.require(item)
  expect(await whole(target, item)).toBe(await whole(source, item))
  expect(canonical(there.document)).toBe(canonical(item.document))
  expect(there.journal_head).toEqual(item.journal_head)
  expect(there.agent_sequence).toBe(item.agent_sequence)
  expect(await proveJournal(target.platform, item)).toMatchObject({ ok: true, head: item.journal_head })
}

const problem = (answer: { status: number; json: Record<string, unknown> }) => ({
  status: answer.status,
  code: answer.json.code,
  detail: answer.json.detail,
})

describe('an archive', () => {
  it('holds the session’s files, described in front, under a name to keep it by', async () => {
    const item = await finished(freshTeam())
    const api = await apiOver(source, item.team, 'viewer')
    const answer = await api.call(`/v1/sessions/${item.id}/archive`)
    expect(answer.headers.get('content-type')).toBe('application/gzip')
    expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="${item.id}.tar.gz"`)
    const files = await unpackTar(gunzipSync(answer.bytes), { strict: true })
    const text = (name: string) =>
      Buffer.from(files.find(({ header }) => header.name === name)?.data ?? []).toString()
    const names = files.map(({ header }) => header.name)
    expect(names).toEqual([
      ...['manifest.json', 'document.json', expect.stringMatching(/^artifacts\/data-/)],
      ...['artifacts/log.txt', 'bundles/one.bundle', 'journal.jsonl'],
    ])
    expect(text('journal.jsonl')).toBe(await whole(source, item))
    expect(JSON.parse(text('manifest.json'))).toMatchObject({
      ...{ format: 'gatehouse-session', format_version: 1, session_id: item.id, team: item.team },
      ...{ entries: item.journal_head.sequence + 1, head: item.journal_head },
    })
    expect(await exported(item)).toEqual(answer.bytes)
  })

  it('of a session that goes on holds what was decided so far', async () => {
    const team = freshTeam()
    const live = sessionThat({ team, id: newId('ses') }, [{ type: 'error', data: { message: 'x' } }])
    const item = await store(source, live)
    const bytes = await exported(item)
    const files = await unpackTar(gunzipSync(bytes))
    expect(Buffer.from(files.at(-1)?.data ?? []).toString()).toBe(await whole(source, item))
    const api = await apiOver(target, team)
    const answer = await api.run(await api.upload(bytes))
    expect(problem(answer)).toMatchObject({ status: 422, code: 'invalid_archive' })
    expect(answer.json.detail).toMatch(/only a finished session can be imported/)
  })

  it('is proven before it is given, as are records: a changed entry or file is told and never served', async () => {
    const item = await finished(freshTeam())
    const api = await apiOver(source, item.team, 'viewer')
    const { blobs } = source.platform
    const data = (await objects(source, objectKey.artifactPrefix(item.team, item.id)))[0] ?? ''
    const key = objectKey.segment(item.team, item.id, 1)
    const text = (await blobs.get(key)) ?? ''
    const forge = (line: string): string => {
      const entry = { ...fromLine(line), data: { message: 'forged' } }
      return toLine({ ...entry, hash: hashOf(entry) })
    }
    const forged = text.replace(/^.*"seen".*$/m, forge)
    for (const [changed, other] of [
      [key, text.replace('"seen"', '"sewn"')],
      [key, forged],
      [data, ((await blobs.get(data)) ?? '').replace('{', '{ ')],
    ] as const) {
      const before = (await blobs.get(changed)) ?? ''
      expect(other).not.toBe(before)
      await blobs.put(changed, other)
      for (const what of ['archive', 'records'])
        expect(problem(await api.call(`/v1/sessions/${item.id}/${what}`)), what).toMatchObject({
          ...{ status: 500, code: 'journal_damaged' },
        })
      await blobs.put(changed, before)
    }
    expect((await api.call(`/v1/sessions/${item.id}/records`)).status).toBe(200)
  })

  it('is given to nobody of another team, and only to a person', async () => {
    const item = await finished(freshTeam())
    const stranger = await apiOver(source, freshTeam())
    for (const what of ['archive', 'records'])
      expect((await stranger.call(`/v1/sessions/${item.id}/${what}`)).status).toBe(404)
  })
})

describe('an import of an archive', () => {
  it('makes the very same session, with all that belongs to it', async () => {
    const item = await finished(freshTeam())
    const api = await apiOver(target, item.team, 'operator')
    const answer = await api.run(await api.upload(await exported(item)))
    expect(answer.status).toBe(201)
    expect(answer.headers.get('location')).toBe(`/v1/sessions/${item.id}`)
    expect(answer.json).toMatchObject({ id: item.id, state: 'abandoned', journal_head: item.journal_head })
    await requireSame(item)
    const there = await target.platform.sessions.require(item)
    expect(there.runtime).toMatchObject({ settled: true, start_pending: false, compute: null })
    expect(there.runtime.lease).toMatchObject({ epoch: 0, worker_id: null, expires_at: null })
    const [artifact, saved] = [
      objectKey.artifact(item.team, item.id, 'log.txt'),
      objectKey.bundle(item.team, item.id, 'one.bundle'),
    ]
    expect(await target.platform.blobs.get(artifact)).toBe('what a check printed')
    expect(await target.platform.blobs.get(saved)).toBe(bundle)
    expect(await objects(target, 'imports/')).toEqual([])

    for (const path of ['', '/events?limit=3', '/journal', '/journal/verify', '/archive', '/records']) {
      const [here, back] = await Promise.all(
        [source, target].map(async (pieces) =>
          (await apiOver(pieces, item.team)).call(`/v1/sessions/${item.id}${path}`),
        ),
      )
      expect(back?.status, path).toBe(200)
      if (path !== '') expect(back?.bytes, path).toEqual(here?.bytes)
    }
    const { json } = await api.call(`/v1/sessions/${item.id}/journal/verify`)
    expect(json.ok).toBe(true)
    expect(api.faults).toEqual([])
  })

  it('is answered the same when it is repeated, with or without a key, and refused with another request', async () => {
    const item = await finished(freshTeam())
    const api = await apiOver(target, item.team)
    const importId = await api.upload(await exported(item))
    const key = { 'idempotency-key': 'once' }
    const first = await api.run(importId, { kind: 'archive' }, key)
    expect(first.status).toBe(201)
    const again = await api.run(importId, { kind: 'archive' }, key)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    const bare = await api.run(importId)
    expect([again.bytes, bare.bytes, bare.status]).toEqual([first.bytes, first.bytes, 201])
    const start = { repo: 'https://example.com/a', intent: 'x', engine_command: 'true' }
    const other = await api.run(importId, { kind: 'records', start })
    expect(problem(other)).toMatchObject({ status: 422, code: 'idempotency_mismatch' })
  })

  it('begins with an id that a repeat with the same key gets again', async () => {
    const api = await apiOver(target, freshTeam())
    const [first, again] = [
      await api.call('/v1/imports', {}, { 'idempotency-key': 'begin' }),
      await api.call('/v1/imports', {}, { 'idempotency-key': 'begin' }),
    ]
    expect(first.status).toBe(201)
    expect(first.json.import_id).toMatch(/^imp_/)
    expect(again.bytes).toEqual(first.bytes)
  })

  it('is kept from a viewer, and from whoever uploaded nothing', async () => {
    const team = freshTeam()
    const viewer = await apiOver(target, team, 'viewer')
    expect((await viewer.call('/v1/imports', {})).status).toBe(403)
    expect((await viewer.run(newId('imp'))).status).toBe(403)
    const api = await apiOver(target, team)
    expect(problem(await api.run(newId('imp')))).toMatchObject({ status: 404, code: 'not_found' })
    const ours = await api.upload('x')
    expect((await (await apiOver(target, freshTeam())).run(ours)).status).toBe(404)
    expect((await api.run('imp_x')).status).toBe(422)
    for (const body of [{}, { kind: 'zip' }, { kind: 'archive', more: 1 }, { kind: 'records' }])
      expect((await api.run(ours, body)).status).toBe(422)
  })

  it('never merges: a session that is there stays as it is', async () => {
    const item = await finished(freshTeam())
    const bytes = await exported(item)
    const api = await apiOver(source, item.team)
    const importId = await api.upload(bytes)
    expect(problem(await api.run(importId))).toMatchObject({ status: 409, code: 'already_exists' })
    expect(await source.platform.sessions.require(item)).toEqual(item)
    expect(await objects(source, 'imports/')).toEqual([])
  })

  it('refuses another team’s archive, and leaves nothing of what it refuses', async () => {
    const item = await finished(freshTeam())
    const api = await apiOver(target, freshTeam())
    const importId = await api.upload(await exported(item))
    const before = await objects(target, 'imports/')
    const answer = await api.run(importId)
    expect(problem(answer)).toMatchObject({ status: 422, code: 'invalid_archive' })
    expect(answer.json.detail).toContain(`of another team, ${item.team}`)
    expect(before.filter((key) => key.endsWith(importId))).toHaveLength(1)
    expect((await objects(target, 'imports/')).filter((key) => key.endsWith(importId))).toEqual([])
    expect(await objects(target, objectKey.session(item.team, item.id))).toEqual([])
    expect(await target.platform.sessions.get(item)).toBeNull()
    expect((await api.run(importId)).status).toBe(404)
  })

  it('is made by exactly one of several at once', async () => {
    const item = await finished(freshTeam())
    const bytes = await exported(item)
    const api = await apiOver(target, item.team)
    const uploads = await Promise.all(Array.from({ length: 4 }, () => api.upload(bytes)))
    const replies = await Promise.all(uploads.map((importId) => api.run(importId)))
    expect(replies.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409])
    for (const { status, json } of replies)
      if (status === 409) expect(['already_exists', 'conflict']).toContain(json.code)
    await requireSame(item)
  })

  it('is answered to all repeats at once as to the one that made it', async () => {
    const item = await finished(freshTeam())
    const api = await apiOver(target, item.team)
    const importId = await api.upload(await exported(item))
    const replies = await Promise.all(Array.from({ length: 4 }, () => api.run(importId)))
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201, 201])
    await requireSame(item)
  })

  it('keeps the bytes of a forged rival out, whichever comes first', async () => {
    for (let turn = 0; turn < 4; turn++) {
      const item = await finished(freshTeam())
      const lines = (await whole(source, item)).trimEnd().split('\n')
      const others = Object.fromEntries(
        (await objects(source, objectKey.artifactPrefix(item.team, item.id))).map((key) => [
          key,
          key.split('/').at(-1),
        ]),
      )
      const files: Record<string, string> = { 'bundles/one.bundle': 'of the rival' }
      for (const [key, name] of Object.entries(others))
        files[`artifacts/${name}`] = (await source.platform.blobs.get(key)) ?? ''
      const more = (entries: Entry[]): Entry[] => [
        ...entries.map((one) => (one.type === 'error' ? { ...one, data: { message: 'forged' } } : one)),
        ...entries.filter(({ kind }) => kind === 'event').map((one) => ({ ...one, id: newId('evt') })),
      ]
      const order = Object.fromEntries(Object.entries(files).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      const forged = await packed(rewritten(madeOf(item, lines, order), more))
      const api = await apiOver(target, item.team)
      const ids = [await api.upload(await exported(item)), await api.upload(forged)]
      const replies = await Promise.all(
        (turn % 2 ? ids.toReversed() : ids).map((importId) => api.run(importId)),
      )
      expect(replies.map(({ status }) => status).toSorted()).toEqual([201, 409])
      const there = await target.platform.sessions.require(item)
      expect(await proveJournal(target.platform, item)).toMatchObject({ ok: true, head: there.journal_head })
      const isForged = there.journal_head.hash !== item.journal_head.hash
      const saved = objectKey.bundle(item.team, item.id, 'one.bundle')
      expect(await target.platform.blobs.get(saved)).toBe(isForged ? 'of the rival' : bundle)
    }
  })

  it('goes on where one died, wherever that was, with the same outcome', async () => {
    const item = await finished(freshTeam())
    const bytes = await exported(item)
    let deaths = 0
    // The calls before these only look.
    for (let call = 4; ; call++) {
      await finishRemovalOf(item)
      const api = await apiOver(target, item.team)
      const importId = await api.upload(bytes)
      const crash = crashAt(target.clients, call, call % 2 ? 'before' : 'after')
      const died = await api.run(importId)
      unarm(target)
      if (!crash.fired) break
      deaths++
      // One that dies while it removes the upload has said what it came to.
      expect(died.status === 500 || call >= 12, `call ${call}`).toBe(true)
      const again = await api.run(importId)
      expect(again.status, `call ${call}: ${again.bytes}`).toBe(201)
      await requireSame(item)
    }
    expect(deaths).toBeGreaterThan(7)
  }, 60_000)

  it('that died for good is cleared by the sweep’s removal, and its id is free again', async () => {
    const item = await finished(freshTeam())
    const api = await apiOver(target, item.team)
    const importId = await api.upload(await exported(item))
    // The put that makes the session, after everything else was written.
    const crash = crashAt(target.clients, 10, 'before')
    expect((await api.run(importId)).status).toBe(500)
    unarm(target)
    expect(crash.fired).toBe(true)
    expect(await objects(target, objectKey.session(item.team, item.id))).not.toEqual([])
    expect((await api.call(`/v1/sessions/${item.id}`)).status).toBe(404)

    const second = await api.upload(await exported(item))
    expect(problem(await api.run(second))).toMatchObject({ status: 409, code: 'conflict' })
    const begun = now
    now = begun + limits.importWriteMs
    expect(problem(await api.run(importId))).toMatchObject({ status: 409, code: 'conflict' })
    const due = async () => (await target.platform.sessions.due(now, 100)).map(({ id }) => id)
    now = begun + limits.importHoldMs - 60_000
    expect(await due()).not.toContain(item.id)
    now = begun + limits.importHoldMs
    expect(await due()).toContain(item.id)
    expect(await finishRemoval(target.platform, item)).toBe(true)
    expect(await objects(target, objectKey.session(item.team, item.id))).toEqual([])
    expect((await api.run(second)).status).toBe(201)
    await requireSame(item)
    now = Date.now()
  })

  it('is as old for retention as the import, and can be made again once it was removed', async () => {
    const item = await finished(freshTeam())
    const api = await apiOver(target, item.team)
    const { platform } = target
    expect((await api.run(await api.upload(await exported(item)))).status).toBe(201)
    const kept = { sessions: 0, days: limits.retention.days }
    now = Date.parse(item.document.updated_at) + (limits.retention.days + 1) * 86_400_000
    await removeSession(platform, (await platform.sessions.finished(item.team, 1))[0] ?? { ...item })
    expect((await api.run(await api.upload(await exported(item)))).status).toBe(201)
    await requireSame(item)
    expect(await overRetention(platform, item.team, kept, 10)).toEqual([])
    now += (limits.retention.days + 1) * 86_400_000
    expect(await overRetention(platform, item.team, kept, 10)).toMatchObject([{ id: item.id }])
    now = Date.now()
  })
})

/** Takes away what `crashAt` put into the clients. */
const unarm = ({ clients: { dynamo, s3, sfn } }: Pieces): void => {
  for (const client of [dynamo, s3, sfn]) client.middlewareStack.remove('crash')
}

/** Removes a session, or what is left of its import, from the target. */
const finishRemovalOf = async (item: SessionItem): Promise<void> => {
  const { platform } = target
  const there = await platform.sessions.get(item)
  if (there) await removeSession(platform, there)
  else await finishRemoval(platform, item)
}
