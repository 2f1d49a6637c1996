import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { startWorkers } from '../../../infra/local/workers.ts'
import { newId } from '../../../lib/ids.ts'
import { send } from '../../../lib/process/live.ts'
import { startOf } from '../../../lib/process/stat.ts'
import { temporaryFolder } from '../../repositories.ts'
import { startDaemon } from '../../support/daemon.ts'

/** A worker that leaves a daemon in its session's folder, ends or waits, and never cleans up. */
const program = (note: string, end: 'ends' | 'waits', session: string): string => `
  const { execFileSync } = require('node:child_process')
  const { mkdirSync, writeFileSync } = require('node:fs')
  const work = process.env.GATEHOUSE_WORKER_RUNS + '/${session}/work'
  mkdirSync(work, { recursive: true })
  writeFileSync(work + '/held-by', process.env.GATEHOUSE_WORKER_ID)
  execFileSync('sh', ['-c', ${JSON.stringify(startDaemon(note, '$0'))}, work], { env: { PATH: process.env.PATH } })
  ${end === 'waits' ? 'setInterval(() => {}, 1000)' : ''}
`

const launch = async (end: 'ends' | 'waits') => {
  const home = temporaryFolder()
  const runs = join(home, 'runs')
  const note = join(home, 'pid')
  const file = join(home, 'worker.cjs')
  const session_id = newId('ses')
  writeFileSync(file, program(note, end, session_id))
  const stopped: { id: string; alive: boolean }[] = []
  const daemon = () => Number(readFileSync(`${note}.done`, 'utf8'))
  const workers = startWorkers({
    ...{ program: file, home, runs, api: () => 'http://127.0.0.1:9', log: console.error },
    onStopped: async ({ id }) => void stopped.push({ id, alive: startOf(daemon()) !== null }),
  })
  const id = newId('wrk')
  await workers.launch({ id, team: 'default', session_id, token: 'x' })
  return { workers, id, home, runs, note, daemon, stopped }
}

test('a worker is said to be stopped when the daemon that it left is gone as well', async () => {
  const { id, stopped } = await launch('ends')
  await vi.waitUntil(() => stopped.length > 0, { timeout: 20_000 })
  expect(stopped).toEqual([{ id, alive: false }])
})

test('what a worker of an earlier stack left is ended when that worker is given up', async () => {
  const { workers, id, home, runs, note, daemon } = await launch('waits')
  await vi.waitUntil(() => existsSync(`${note}.done`), { timeout: 20_000 })
  expect(startOf(daemon())).not.toBeNull()
  const next = startWorkers({
    ...{ program: '', home, runs, api: () => '', log: console.error, onStopped: async () => {} },
  })
  await next.stop(id)
  expect(startOf(daemon())).toBeNull()
  await workers.close()
  send(daemon(), 'SIGKILL')
})
