import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { localTeam } from '../../infra/local/admin-token.ts'
import { newId, newSecret } from '../../lib/ids.ts'
import { processesOf, until } from '../faults/kept.ts'
import { stalls } from '../faults/stall.ts'
import { temporaryFolder } from '../repositories.ts'
import { createClient } from './client.ts'
import { scripted } from './engines.ts'
import { useStack } from './stack.ts'

vi.setConfig({ testTimeout: 120_000 })

const used = useStack()
const itemOf = (id: string) => used.stack.platform.sessions.require({ team: localTeam, id })

/** An engine that looks for its worker and reads the session's token out of its memory, where it is bound to be. */
const thief = (loot: string) =>
  scripted(`
import { openSync, readSync } from 'node:fs'
const environment = (pid) => readFileSync('/proc/' + pid + '/environ', 'utf8').split('\\0')
const parentOf = (pid) => Number(/^PPid:\\s+(\\d+)/m.exec(readFileSync('/proc/' + pid + '/status', 'utf8'))[1])
let worker = process.ppid
while (!environment(worker).some((line) => line.startsWith('GATEHOUSE_API='))) worker = parentOf(worker)
const api = environment(worker).find((line) => line.startsWith('GATEHOUSE_API=')).slice('GATEHOUSE_API='.length)
const memory = openSync('/proc/' + worker + '/mem', 'r')
const found = new Set()
for (const line of readFileSync('/proc/' + worker + '/maps', 'utf8').split('\\n')) {
  const [, from, to, mode] = /^(\\w+)-(\\w+) (\\S+)/.exec(line) ?? []
  if (!mode?.startsWith('rw')) continue
  const start = Number('0x' + from)
  const chunk = Buffer.alloc(Math.min(Number('0x' + to) - start, 64 << 20))
  try {
    const read = readSync(memory, chunk, 0, chunk.length, start)
    for (const [secret] of chunk.subarray(0, read).toString('latin1').matchAll(/gh_[A-Za-z0-9_-]{43}/g)) found.add(secret)
  } catch {}
}
const call = async (token, path, body) => {
  const answer = await fetch(api + '/worker/v1/' + path, {
    method: 'POST',
    headers: { authorization: 'Bearer ' + token, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return answer.status
}
const alive = []
for (const secret of found) if (await call(secret, 'heartbeat', { epoch: 1 }) === 200) alive.push(secret)
const [stolen] = alive
const tried = {
  lease: await call(stolen, 'lease', { claim: 'the engine takes it over' }),
  told: await call(stolen, 'entries', {
    epoch: 1,
    batch_id: 'forged',
    facts: [{ type: 'check_started', data: { name: 'done' } }],
  }),
  verify: await call(stolen, 'complete', {
    epoch: 1,
    command_id: '${newId('cmd')}',
    result: { outcome: 'Verify', results: [], tree_edited: false, review: null },
  }),
}
writeFileSync(${JSON.stringify(loot)}, JSON.stringify({ stolen, tried }))
writeFileSync('work', 'not what was asked for')
`)

const lootSchema = z.object({
  stolen: z.string(),
  tried: z.object({ lease: z.number(), told: z.number(), verify: z.number() }),
})

test('an engine that reads the token out of its worker’s memory gets nowhere with it', async () => {
  const loot = join(temporaryFolder(), 'loot')
  const places = stalls()
  places.hold('check')
  const { id } = await used.begin({
    engine_command: thief(loot),
    contract: {
      checks: [{ name: 'done', command: `test ! -e work || { ${places.shell('check')}; }; test -e done` }],
    },
  })
  await places.reached('check')
  const { stolen, tried } = lootSchema.parse(JSON.parse(readFileSync(loot, 'utf8')))
  expect(tried).toEqual({ lease: 409, told: 409, verify: 409 })

  const { document, runtime } = await itemOf(id)
  expect(document.step).toBe('Validate')
  const { epoch } = runtime.lease
  const command_id = runtime.command?.id
  const accomplice = createClient(used.api.url, stolen)
  const bodies: [string, unknown][] = [
    ['lease', { claim: newSecret() }],
    ...[epoch, epoch - 1].flatMap((of): [string, unknown][] => [
      ['heartbeat', { epoch: of }],
      ['entries', { epoch: of, batch_id: 'b', facts: [{ type: 'error', data: { message: 'x' } }] }],
      ['uploads', { epoch: of, uploads: [{ kind: 'artifact', name: 'x.log' }] }],
      ['complete', { epoch: of, command_id, result: { outcome: 'fault', detail: 'x' } }],
      [
        'complete',
        { epoch: of, command_id, result: { outcome: 'Validate', results: [], tree_edited: false } },
      ],
    ]),
  ]
  const answers = [
    ...(await Promise.all(bodies.map(([path, body]) => accomplice.call('POST', `/worker/v1/${path}`, body)))),
    await accomplice.call('GET', `/worker/v1/command?epoch=${epoch}&wait_ms=0`),
  ]
  for (const answer of answers) expect(answer.status, JSON.stringify(answer.body)).toBe(409)
  expect((await itemOf(id)).runtime).toMatchObject({ lease: { epoch }, command: { id: command_id } })
  await used.api.cancel(id)
  places.release('check')
  await used.api.untilEnd(id)
})

test('nothing of the engine’s is alive when its work is judged, and its worker’s end is in the journal', async () => {
  const places = stalls()
  places.hold('engine')
  places.hold('check')
  const { id } = await used.begin({
    engine_command: `setsid sleep 300 & ${places.shell('engine')}; touch done`,
    contract: {
      checks: [{ name: 'done', command: `test ! -e done || { ${places.shell('check')}; }; test -e done` }],
    },
  })
  await places.reached('engine')
  const first = (await itemOf(id)).runtime.compute?.id ?? ''
  expect(await processesOf([first])).not.toEqual([])
  places.release('engine')
  await places.reached('check')
  expect(await processesOf([first])).toEqual([])
  const judge = (await itemOf(id)).runtime.compute?.id
  expect(judge).not.toBe(first)
  places.release('check')
  await used.api.untilGate(id, 'approval')
  await until('the first worker’s end is told', async () =>
    JSON.stringify(
      (await used.api.call('GET', `/v1/sessions/${id}/events?types=compute_stopped`)).body,
    ).includes(first)
      ? true
      : null,
  )
  await used.api.approve(id)
  await used.api.untilEnd(id)
})

test('what the work ignores stays in the worktree from the engine to its judge and to its next run', async () => {
  const seen = join(temporaryFolder(), 'seen')
  const setups = join(temporaryFolder(), 'setups')
  const { id } = await used.begin(
    {
      engine_command: `pwd >> ${seen}; test -e cache/kept && touch done; mkdir -p cache; touch cache/kept work`,
      contract: {
        setup: [`pwd >> ${setups}`],
        checks: [{ name: 'done', command: 'test -e done' }],
      },
    },
    { '.gitignore': 'cache\n' },
  )
  await used.api.untilGate(id, 'approval')
  const trees = readFileSync(seen, 'utf8').trim().split('\n')
  expect(new Set(trees).size).toBe(1)
  expect(trees).toHaveLength(2)
  // On the untouched tree, in the worktree, which is the same one all the way, and on the clean checkout.
  expect(readFileSync(setups, 'utf8').trim().split('\n')).toHaveLength(3)
  await used.api.approve(id)
  await used.api.untilEnd(id)
  await until('the worktree is gone', () => (existsSync(trees[0] ?? '') ? null : true))
})
