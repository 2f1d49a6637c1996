import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openRuns } from '../../../infra/local/runs.ts'
import { startWorkers } from '../../../infra/local/workers.ts'
import { newId } from '../../../lib/ids.ts'
import { setImmutable } from './small-disk.ts'

const home = mkdtempSync(join(tmpdir(), 'gatehouse-leftovers-'))
const probe = join(home, 'probe')
writeFileSync(probe, '')
const supported = setImmutable(probe, true)
setImmutable(probe, false)

// Only root may make a file immutable, and not on every file system.
test.skipIf(!supported)(
  'a run that can’t be removed ends as any other, is named, and goes later',
  async () => {
    const lines: string[] = []
    const log = (line: string) => void lines.push(line)
    const runs = await openRuns(home, log)
    const session = newId('ses')
    const run = join(runs.root.folder, session)
    const file = join(run, 'file')
    mkdirSync(run, { recursive: true })
    writeFileSync(file, '')
    setImmutable(file, true)
    onTestFinished(() => {
      setImmutable(file, false)
      rmSync(home, { recursive: true, force: true })
    })
    const program = join(home, 'program.mjs')
    writeFileSync(program, '')
    const stopped = Promise.withResolvers<string>()
    const workers = startWorkers({
      ...{ program, home, runs: runs.root.folder, api: () => '', log },
      onStopped: async ({ reason }) => stopped.resolve(reason),
    })
    const id = newId('wrk')
    await workers.launch({ id, team: 't', session_id: session, token: 'x' })
    expect(await stopped.promise).toBe('exit 0')
    expect(await workers.running(id)).toBe(false)
    await workers.stop(id)
    for (const _ of ['once', 'again']) await runs.clear(workers.holds)
    expect(lines).toEqual([
      expect.stringContaining(`${session}: what it left could not be removed yet`),
      expect.stringContaining(`tried again later: ${session}`),
    ])
    expect(existsSync(file)).toBe(true)

    setImmutable(file, false)
    await runs.clear(workers.holds)
    expect(existsSync(run)).toBe(false)
    await workers.close()
  },
)
