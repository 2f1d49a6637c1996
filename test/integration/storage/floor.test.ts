import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { launchingWithRoom, withFloor } from '../../../infra/local/storage/floor.ts'
import { lackOfRoom } from '../../../infra/local/storage/room.ts'
import type { Compute } from '../../../lib/store/platform.ts'
import { mountSmallDisk } from './small-disk.ts'

const probe = mountSmallDisk(1)
probe?.unmount()
const megabyte = 1024 * 1024

test.skipIf(!probe)(
  'below the floor no session and no worker is begun; all else goes on, and they too once there is room',
  async () => {
    const disk = mountSmallDisk(8)
    onTestFinished(() => disk?.unmount())
    const folder = disk?.folder ?? ''
    const lack = () => lackOfRoom([folder], 4 * megabyte)
    const launched: string[] = []
    const compute: Compute = {
      launch: async ({ id }) => void launched.push(id),
      running: async () => false,
      list: async () => [],
      stop: async () => {},
      forget: async () => {},
    }
    const answer = withFloor(() => new Response('done'), lack)
    const call = (method: string, path: string) => answer(new Request(`http://localhost${path}`, { method }))
    const launch = () =>
      launchingWithRoom(compute, lack).launch({ id: 'one', team: 't', session_id: 's', token: 'x' })

    disk?.fill()
    const refused = await call('POST', '/v1/sessions')
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({
      code: 'unavailable',
      detail: expect.stringContaining('has 0 MB left, and at least 4 MB are needed'),
    })
    expect((await call('PUT', '/v1/imports/some')).status).toBe(503)
    await expect(launch()).rejects.toMatchObject({ code: 'compute_unavailable' })
    expect(launched).toEqual([])
    for (const [method, path] of [
      ['GET', '/v1/sessions'],
      ['POST', '/v1/sessions/ses_1/cancel'],
    ] as const)
      expect((await call(method, path)).status).toBe(200)

    disk?.empty()
    writeFileSync(join(folder, 'some'), Buffer.alloc(megabyte))
    expect((await call('POST', '/v1/sessions')).status).toBe(200)
    await launch()
    expect(launched).toEqual(['one'])
  },
)
