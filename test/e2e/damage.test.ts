import { expect, test } from 'vitest'
import { localTeam } from '../../infra/local/admin-token.ts'
import { digestIn } from '../../lib/session/artifact-name.ts'
import { objectKey } from '../../lib/store/keys.ts'
import { useStack } from './stack.ts'

const used = useStack()

const keysOf = async (id: string): Promise<string[]> => {
  const keys: string[] = []
  for await (const key of used.stack.platform.blobs.list(objectKey.session(localTeam, id))) keys.push(key)
  return keys
}

const nameIn = (key: string): string => key.slice(key.lastIndexOf('/') + 1)

test('whatever byte of what a reviewer is shown, or of the work, is changed or is gone: it is found, and never shown', async () => {
  const { id } = await used.begin({ engine_command: 'echo line > work.txt; touch done' })
  await used.api.untilGate(id, 'approval')
  const { blobs } = used.stack.platform
  const verify = async () => (await used.api.call('GET', `/v1/sessions/${id}/journal/verify`)).body
  expect(await verify()).toMatchObject({ ok: true })
  const keys = await keysOf(id)
  const files = keys.filter((key) => key.includes('/bundles/') || digestIn(nameIn(key)) !== null)
  const kinds = ['/bundles/', '/review-', '.patch', '/results-']
  for (const kind of kinds)
    expect(
      files.filter((key) => key.includes(kind)),
      kind,
    ).not.toEqual([])
  for (const key of files) {
    const bytes = await blobs.bytes(key)
    if (!bytes) throw new Error(`${key} is not there`)
    const other = Buffer.from(bytes)
    other.writeUInt8(other.readUInt8(other.length >> 1) ^ 1, other.length >> 1)
    await blobs.put(key, other)
    expect(await verify(), key).toMatchObject({ ok: false, problem: {} })
    if (/\/review-.*\.json$/.test(key))
      expect(used.api.problem(await used.api.call('GET', `/v1/sessions/${id}/review`)).code).toBe(
        'journal_damaged',
      )
    if (key.endsWith('.patch'))
      await expect(used.api.call('GET', `/v1/sessions/${id}/diff`)).rejects.toThrow()
    await blobs.remove([key])
    expect(await verify(), key).toMatchObject({ ok: false, problem: {} })
    await blobs.put(key, bytes)
  }
  expect(await verify()).toMatchObject({ ok: true })
  await used.api.approve(id)
  expect(await used.api.untilEnd(id)).toMatchObject({ state: 'merged' })
}, 60_000)
