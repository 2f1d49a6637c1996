import { join } from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { mountSmallDisk } from '../integration/storage/small-disk.ts'
import { useStack } from './stack.ts'

// What is awaited is a fact; how long it takes is the machine's matter.
vi.setConfig({ testTimeout: 120_000 })

const disk = mountSmallDisk(256)

// Only root may mount a small file system.
describe.skipIf(!disk)('on a small disk', () => {
  // Called first, and so run last: the stack is closed by then.
  afterAll(() => disk?.unmount())
  const used = useStack({ home: join(disk?.folder ?? '', 'home') })

  test('an engine that fills it ends its own session with a clear reason, and another goes through', async () => {
    const { api, stack } = used
    expect(stack.runs.folder).toContain(disk?.folder)
    const filling = await used.begin({ engine_command: 'yes log line > build.log' })
    const ended = await api.untilGate(filling.id, ['validate', 'approval', 'preflight'])
    expect(ended.last_turn).toMatchObject({
      status: 'resource_killed',
      reason: expect.stringContaining('the disk of its worktree had less than 32 MiB left'),
    })
    expect((await api.call('GET', '/healthz')).status).toBe(200)
    expect((await api.call('GET', `/v1/sessions/${filling.id}/journal/verify`)).body).toMatchObject({
      ok: true,
    })

    const { id } = await used.begin()
    await api.untilGate(id, 'approval')
    await api.approve(id)
    expect((await api.settled(id)).state).toBe('merged')
    await api.cancel(filling.id)
    await api.settled(filling.id)
  })
})
