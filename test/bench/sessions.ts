import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { UpdateCommand } from '@aws-sdk/lib-dynamodb'
import { execa } from 'execa'
import { startStack } from '../../infra/local/stack.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import type { Clients } from '../../lib/store/clients.ts'
import { itemKey } from '../../lib/store/keys.ts'
import { createClient } from '../e2e/client.ts'
import { compare, median, row, time } from './measure.ts'

/** The work that both sides do: a real test runner, and a check that costs nothing, which shows our own share. */
const works = [
  {
    name: 'node --test',
    check: 'node --test',
    files: {
      'sum.mjs': 'export const sum = (a, b) => a - b\n',
      'sum.test.mjs':
        "import { equal } from 'node:assert'\nimport { test } from 'node:test'\nimport { sum } from './sum.mjs'\ntest('adds', () => equal(sum(1, 2), 3))\n",
    },
    engine: "sed 's/a - b/a + b/' sum.mjs > new && mv new sum.mjs",
  },
  { name: 'test -e', check: 'test -e done', files: { 'README.md': 'hello\n' }, engine: 'touch done' },
] as const

const script = join(import.meta.dirname, 'bare-session.sh')
let made = 0

/** The whole stack as a user has it, with workers as processes of their own. */
const start = async () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  const held: { clients?: Clients } = {}
  const stack = await startStack({
    port: 0,
    home: join(root, 'home'),
    concurrency: 16,
    log: console.error,
    onClients: (clients) => {
      held.clients = clients
    },
  })
  const { clients } = held
  if (!clients) throw new Error('the stack gave no clients')
  return { root, stack, clients, api: createClient(stack.url, stack.adminToken) }
}
type Bench = Awaited<ReturnType<typeof start>>

const repository = async ({ root }: Bench, files: Record<string, string>): Promise<string> => {
  const directory = join(root, `repository-${made++}`)
  mkdirSync(directory)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
  const git = (...args: string[]) =>
    execa('git', ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost', ...args], { cwd: directory })
  await git('init', '--quiet')
  await git('add', '.')
  await git('commit', '--quiet', '-m', 'Begin')
  return directory
}

type Work = (typeof works)[number]

/** One session from the request to the delivered branch; a person who decides at once stands at the gate. */
const session = async ({ api }: Bench, repo: string, work: Work): Promise<void> => {
  const { id } = await api.start({
    repo,
    intent: 'Make it green',
    engine_command: work.engine,
    mode: 'auto',
    contract: { checks: [{ name: 'check', command: work.check }] },
  })
  await api.follow(id, (entry) => entry.type === 'gate_opened' || entry.type === 'session_failed')
  await api.approve(id)
  const entries = await api.follow(
    id,
    (entry) => entry.type === 'state_changed' && (entry.data.to === 'merged' || entry.data.to === 'failed'),
  )
  if (entries.at(-1)?.data.to !== 'merged') throw new Error(`session ${id} was not merged`)
}

const bare = ({ root }: Bench, repo: string, work: Work) =>
  execa('sh', [script, repo, join(root, `work-${made++}`), `bench/${made++}`, work.check, work.engine])

const whole = async (bench: Bench, work: Work): Promise<void> => {
  const repo = await repository(bench, work.files)
  console.log(
    row(
      `one session, ${work.name}`,
      await compare(
        5,
        () => session(bench, repo, work),
        () => bare(bench, repo, work),
      ),
      2.5,
    ),
  )
  const eight = await Promise.all(Array.from({ length: 8 }, () => repository(bench, work.files)))
  const all = (run: (bench: Bench, repo: string, work: Work) => Promise<unknown>) =>
    Promise.all(eight.map((one) => run(bench, one, work)))
  console.log(
    row(
      `eight sessions at once, ${work.name}`,
      await compare(
        2,
        () => all(session),
        () => all(bare),
      ),
    ),
  )
}

const firstLine = async (bench: Bench): Promise<void> => {
  const { api } = bench
  const work = works[1]
  const repo = await repository(bench, work.files)
  const times: number[] = []
  for (let round = 0; round < 4; round++) {
    times.push(
      await time(async () => {
        const { id } = await api.start({
          repo,
          intent: 'Say it',
          engine_command: 'echo first line; sleep 30',
          mode: 'auto',
          contract: { checks: [{ name: 'check', command: work.check }] },
        })
        await api.follow(id, (entry) => entry.type === 'engine_output')
        await api.cancel(id)
      }),
    )
  }
  console.log(
    `${'POST to the engine’s first line, seen on the stream'.padEnd(58)} ${median(times.slice(1)).toFixed(1).padStart(9)} ms`,
  )
}

const transitions = async (bench: Bench): Promise<void> => {
  const { api, clients, stack } = bench
  const repo = await repository(bench, works[1].files)
  const started = await api.start({
    repo,
    intent: 'Stay',
    engine_command: 'true',
    contract: { checks: [{ name: 'check', command: works[1].check }] },
  })
  const { id } = await api.untilGate(started.id, 'contract')
  const read = () => stack.platform.sessions.require({ team: 'local', id })
  let item = await read()
  // Nobody else writes to a session that waits, once its worker is gone and all that follows from it is written.
  for (let quiet = 0; quiet < 20; ) {
    await sleep(50)
    const next = await read()
    const isAtRest = next.runtime.compute?.status === 'stopped' && next.outbox.length === 0
    quiet = isAtRest && next.revision === item.revision ? quiet + 1 : 0
    item = next
  }
  const lines: SessionItem['outbox'] = []
  const write = async () => {
    item = await stack.platform.sessions.commit(item, {
      actor: { kind: 'system', id: 'bench' },
      facts: [{ type: 'operator_guidance', data: { text: 'x', status: 'applied', by: 'bench' } }],
      drained: item.journal_head.sequence,
    })
    lines.push(...item.outbox)
  }
  const key = { ...itemKey.session('bench', id) }
  const update = () =>
    clients.dynamo.send(
      new UpdateCommand({
        TableName: stack.endpoints.table,
        Key: key,
        UpdateExpression: 'SET document = :d, runtime = :r, outbox = :o, revision = :v',
        ExpressionAttributeValues: {
          ':d': item.document,
          ':r': item.runtime,
          ':o': item.outbox,
          ':v': item.revision,
        },
      }),
    )
  console.log(row('a conditional transition : a bare UpdateItem', await compare(300, write, update), 1.3))
  // What the writes took for drained is drained now, so that the session has its journal.
  await stack.platform.journals.drain({ ...item, outbox: lines })
  await api.cancel(id)
}

/** Whole sessions, from the request to the delivered branch, and what one transition costs. */
export const sessions = async (): Promise<void> => {
  const bench = await start()
  try {
    await transitions(bench)
    await firstLine(bench)
    for (const work of works) await whole(bench, work)
  } finally {
    await bench.stack.close()
    rmSync(bench.root, { recursive: true, force: true })
  }
}
