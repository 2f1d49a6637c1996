import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startWorkers } from '../../../infra/local/workers.ts'
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
    const run = join(home, 'worker', 'runs', 'wrk_1')
    const file = join(run, 'tree', 'file')
    mkdirSync(join(run, 'tree'), { recursive: true })
    writeFileSync(file, '')
    setImmutable(file, true)
    onTestFinished(() => {
      setImmutable(file, false)
      rmSync(home, { recursive: true, force: true })
    })
    const program = join(home, 'program.mjs')
    writeFileSync(program, '')
    const lines: string[] = []
    const stopped = Promise.withResolvers<string>()
    const open = () =>
      startWorkers({
        program,
        home,
        api: () => '',
        log: (line) => lines.push(line),
        onStopped: async ({ reason }) => stopped.resolve(reason),
      })
    const workers = open()
    await workers.launch({ id: 'wrk_1', team: 't', session_id: 'ses_1', token: 'x' })
    expect(await stopped.promise).toBe('exit 0')
    expect(await workers.running('wrk_1')).toBe(false)
    await workers.stop('wrk_1')
    await workers.tidy()
    expect(lines).toEqual([expect.stringContaining(`${run} could not be removed`)])
    expect(existsSync(file)).toBe(true)

    setImmutable(file, false)
    const next = open()
    await next.tidy()
    expect(existsSync(run)).toBe(false)
    await next.close()
    await workers.close()
  },
)
