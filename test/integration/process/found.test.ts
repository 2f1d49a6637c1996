import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { liveProcesses, send } from '../../../lib/process/live.ts'
import { killMarked, runProcess } from '../../../lib/process/run.ts'
import { startOf } from '../../../lib/process/stat.ts'
import { temporaryFolder } from '../../repositories.ts'
import { daemonPerl } from '../../support/daemon.ts'

type Daemon = { pid: number; result: Awaited<ReturnType<typeof runProcess>> }

/** Runs a command that leaves a daemon behind and ends; `place` says whether the run is looked for by its folder. */
const leave = async (
  place: string,
  options: { cwd: string; held?: string; env?: Record<string, string>; perl?: string; finds?: boolean },
): Promise<Daemon> => {
  const note = join(temporaryFolder(), 'pid')
  const output = temporaryFolder()
  const args = [note, options.cwd, options.held ?? '']
  const result = await runProcess({
    command: ['/bin/sh', '-c', `"$@"; until test -e ${note}.done; do sleep 0.02; done`, 'sh'].concat([
      options.perl ?? 'perl',
      '-e',
      daemonPerl,
      ...args,
    ]),
    cwd: place,
    env: { PATH: process.env.PATH ?? '', ...options.env },
    ...{ timeoutMs: 20_000, outputFile: join(output, 'log'), marker: basename(output) },
    ...(options.finds === false ? {} : { place }),
  })
  const pid = Number(readFileSync(`${note}.done`, 'utf8'))
  onTestFinished(() => send(pid, 'SIGKILL'))
  return { pid, result }
}

const preload = ['/lib/x86_64-linux-gnu/libm.so.6', '/lib/aarch64-linux-gnu/libm.so.6'].find(existsSync)
const perl = '/usr/bin/perl'

test.each<[string, (place: string) => Parameters<typeof leave>[1]]>([
  ['its working folder', (place) => ({ cwd: place })],
  ['an open file', (place) => ({ cwd: '/', held: join(place, 'held') })],
])('a daemon that renamed itself is found by %s below the run, and ended', async (_, how) => {
  const place = temporaryFolder()
  const { pid, result } = await leave(place, how(place))
  expect(result).toMatchObject({ ended: 'exited', exitCode: 0, survivors: 0 })
  expect(startOf(pid)).toBeNull()
})

test.skipIf(!existsSync(perl))('… by its executable', async () => {
  const place = temporaryFolder()
  copyFileSync(perl, join(place, 'perl'))
  const { pid } = await leave(place, { cwd: '/', perl: join(place, 'perl') })
  expect(startOf(pid)).toBeNull()
})

test.skipIf(preload === undefined)('… by a library', async () => {
  const place = temporaryFolder()
  const library = join(place, 'library.so')
  copyFileSync(preload ?? '', library)
  const { pid } = await leave(place, { cwd: '/', env: { LD_PRELOAD: library } })
  expect(startOf(pid)).toBeNull()
})

test('what is beside the run, or older than its worker, is left alone', async () => {
  const place = temporaryFolder()
  const beside = `${place}-2`
  mkdirSync(beside)
  onTestFinished(() => send(pid, 'SIGKILL'))
  const { pid } = await leave(place, { cwd: beside })
  expect(startOf(pid)).not.toBeNull()
  const since = (startOf(pid) ?? 0) + 1
  expect(await killMarked('no-such-mark', { folder: beside, since })).toBe(0)
  expect(startOf(pid)).not.toBeNull()
  // Whoever does not know when the run began finds it all the same.
  expect(await killMarked('no-such-mark', { folder: beside, since: null })).toBe(0)
  await vi.waitUntil(() => startOf(pid) === null)
})

test('a daemon in a folder that was removed is found there', async () => {
  const place = join(temporaryFolder(), 'run')
  mkdirSync(join(place, 'tree'), { recursive: true })
  const { pid } = await leave(place, { cwd: join(place, 'tree'), finds: false })
  expect(startOf(pid)).not.toBeNull()

  rmSync(place, { recursive: true })
  const query = { group: null, mark: null, place: { folder: place, since: startOf(process.pid) } }
  expect(await liveProcesses(query)).toMatchObject([{ pid }])
})
