import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { aCommand, contractOf } from './commands.ts'
import { outcome, startSession } from './support.ts'
import { startWorkerApi } from './worker-api.ts'
import { startWorker } from './worker-process.ts'

test('a fresh worker delivers the reviewed commit without checking anything out', async () => {
  const contract = contractOf('test -e done')
  const session = await startSession({ engine_command: 'echo yes > done', contract })
  const start = await session.prepare()
  const { checkpoint } = outcome(await session.run('Code', start), 'Code')
  const { review } = outcome(await session.run('Verify', { ...start, checkpoint }), 'Verify')
  session.worker.kill('SIGKILL')
  await session.worker.exited

  const api = await startWorkerApi()
  startWorker({ api: api.url, home: session.folder })
  const url = `${session.api.url}/store/bundle/${checkpoint.bundle}`
  const review_identity = review && {
    ...{ review_id: newId('rev'), kind: review.kind, contract_hash: '' },
    ...{ base: review.base, commit: review.commit, tree: review.tree },
  }
  const facts = { ...session.facts, ...start, checkpoint, review_identity }
  const command = aCommand('Deliver', facts, { bundle: { url } })
  const { delivered } = outcome(await api.run(command), 'Deliver')
  expect(delivered).toMatchObject({ ok: true, commit: review?.commit })
  const branch = delivered.ok ? delivered.branch : ''
  expect(session.repository.git('show', '--name-only', '--format=', branch)).toBe('done')
  const launch = join(session.folder, 'runs', api.sessionId)
  const run = join(launch, 'work', 'run')
  expect(readdirSync(join(launch, 'trees'))).toEqual([])
  expect(readdirSync(join(run, 'tree'))).toEqual([])
  expect(existsSync(join(run, 'index'))).toBe(false)
})
