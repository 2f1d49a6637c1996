import { expect, test } from 'vitest'
import { localTeam } from '../../infra/local/admin-token.ts'
import { digestIn } from '../../lib/artifact-name.ts'
import { objectKey } from '../../lib/store/keys.ts'
import { useStack } from './stack.ts'

const used = useStack()

const keysOf = async (id: string): Promise<string[]> => {
  const keys: string[] = []
  for await (const key of used.stack.platform.blobs.list(objectKey.session(localTeam, id))) keys.push(key)
  return keys
}

const nameIn = (key: string): string => key.slice(key.lastIndexOf('/') + 1)

test('whatever byte of what a reviewer is shown, of a log or of the work, is changed or is gone: one answer tells of it', async () => {
  const { id } = await used.begin({
    engine_command: 'echo said; echo line > work.txt; touch done',
    contract: { setup: ['echo set up'], checks: [{ name: 'unit', command: 'echo look; cat done' }] },
  })
  await used.api.untilGate(id, 'approval')
  const { blobs } = used.stack.platform
  const verify = async () => (await used.api.call('GET', `/v1/sessions/${id}/journal/verify`)).body
  expect(await verify()).toMatchObject({ ok: true })
  const keys = await keysOf(id)
  const files = keys.filter((key) => key.includes('/bundles/') || digestIn(nameIn(key)) !== null)
  const pathsOf = (key: string): string[] => {
    if (key.includes('/bundles/')) return []
    const own = `/artifacts/${nameIn(key)}`
    if (key.endsWith('.patch')) return [own, '/diff']
    if (/\/review-.*\.json$/.test(key)) return [own, '/review']
    return key.includes('/results-') ? [own, '', '/review'] : [own]
  }
  const requireTold = async (key: string): Promise<void> => {
    expect(await verify(), key).toMatchObject({ ok: false, problem: {} })
    for (const path of [...pathsOf(key), '/archive']) {
      const answer = await used.api.call('GET', `/v1/sessions/${id}${path}`)
      expect(used.api.problem(answer).code, `${key} ${path}`).toBe('journal_damaged')
    }
  }
  const { document } = await used.stack.platform.sessions.require({ team: localTeam, id })
  const last = document.last_results_artifact ?? ''
  const kinds = ['/bundles/', '/review-', '.patch', last, '/engine-', '/setup-', '/validate-']
  for (const kind of kinds) {
    const key = files.find((one) => one.includes(kind)) ?? kind
    const bytes = await blobs.bytes(key)
    if (!bytes) throw new Error(`${key} is not there`)
    const other = Buffer.from(bytes)
    other.writeUInt8(other.readUInt8(other.length >> 1) ^ 1, other.length >> 1)
    await blobs.put(key, other)
    await requireTold(key)
    await blobs.remove([key])
    await requireTold(key)
    await blobs.put(key, bytes)
  }
  expect(await verify()).toMatchObject({ ok: true })
  await used.api.approve(id)
  expect(await used.api.untilEnd(id)).toMatchObject({ state: 'merged' })
}, 60_000)
