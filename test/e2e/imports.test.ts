import { expect, test } from 'vitest'
import { newId } from '../../lib/ids.ts'
import { exportRecords } from '../../lib/journal/agent/interchange.ts'
import { typeIdOf, uuidOf } from '../../lib/journal/agent/uuid.ts'
import { removeSession } from '../../lib/store/retention.ts'
import { makeRepository } from '../repositories.ts'
import { history } from '../unit/journal/agent/fixtures.ts'
import { useStack } from './stack.ts'

const used = useStack()

const uploaded = async (bytes: Blob): Promise<string> => {
  const { body } = await used.api.call('POST', '/v1/imports', {})
  const { import_id, upload_url } = Object(body)
  expect((await fetch(upload_url, { method: 'PUT', body: bytes })).status).toBe(200)
  return import_id
}

const download = async (id: string, what: string): Promise<Blob> => {
  const headers = { authorization: `Bearer ${used.stack.adminToken}` }
  const answer = await fetch(`${used.stack.url}/v1/sessions/${id}/${what}`, { headers })
  expect(answer.status).toBe(200)
  return answer.blob()
}

test('a session that began elsewhere is worked on to its end, kept as an archive, removed, and comes back whole', async () => {
  const exported = exportRecords(history('settled'))
  if (!exported.ok) throw new Error('it can be exported')
  const uuid = uuidOf(newId('ses'))
  const old: string = JSON.parse(exported.lines[0] ?? '').sessionId
  const text = exported.lines.map((line) => `${line.replaceAll(old, uuid)}\n`).join('')
  const id = typeIdOf('ses', uuid)
  const start = {
    ...{ repo: makeRepository().directory, intent: 'Be done', engine_command: 'touch done', mode: 'auto' },
    contract: { checks: [{ name: 'done', command: 'test -e done' }] },
  }
  const begun = await used.api.call('POST', `/v1/imports/${await uploaded(new Blob([text]))}`, {
    kind: 'records',
    start,
  })
  expect(begun.status).toBe(201)
  expect(begun.body).toMatchObject({ id })
  await used.api.untilGate(id, 'approval')
  await used.api.approve(id)
  const merged = await used.api.settled(id)
  expect(merged.state).toBe('merged')
  expect(await (await download(id, 'records')).text()).toBe(text)
  expect(await used.api.verify(id)).toMatchObject({ ok: true })

  const { platform } = used.stack
  const key = { team: merged.team, id }
  // The end of its worker is noted a moment after the session's own.
  await expect
    .poll(async () => (await platform.sessions.require(key)).runtime.compute?.status, { timeout: 20_000 })
    .toBe('stopped')
  const [archive, journal, review] = [
    await download(id, 'archive'),
    await used.api.journal(id),
    await used.api.review(id),
  ]
  await expect
    .poll(async () => removeSession(platform, await platform.sessions.require(key)), { timeout: 20_000 })
    .toBe(true)
  expect((await used.api.call('GET', `/v1/sessions/${id}`)).status).toBe(404)

  const back = await used.api.call('POST', `/v1/imports/${await uploaded(archive)}`, { kind: 'archive' })
  expect(back.status, JSON.stringify(back.body)).toBe(201)
  const { version: _, compute: __, ...was } = merged
  const { journal_head, event_cursor } = await used.api.get(id)
  expect(await used.api.get(id)).toMatchObject({ ...was, journal_head, event_cursor })
  expect(await used.api.journal(id)).toEqual(journal)
  expect(await used.api.review(id)).toEqual(review)
  expect(await used.api.verify(id)).toMatchObject({ ok: true })

  const next = await used.api.call('POST', `/v1/sessions/${id}/continue`, {
    ...{ intent: 'Be more than done', engine_command: 'touch more' },
    contract: { checks: [{ name: 'more', command: 'test -e more' }] },
  })
  expect(next.status, JSON.stringify(next.body)).toBe(201)
  const more = await used.api.untilGate(String(Object(next.body).id), 'approval')
  expect(more).toMatchObject({ resumed_from: id, start_commit: merged.result_commit })
  await used.api.cancel(more.id)
  await used.api.settled(more.id)
  expect(used.faults).toEqual([])
}, 120_000)
