import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { execa } from 'execa'
import type { z } from 'zod'
import { reviewSchema, sessionSchema } from '../../functions/api/schemas.ts'
import { type Entry, entrySchema } from '../../lib/journal/entry.ts'
import type { Stack } from './stack.ts'

type Demo = { home: string; tokenFile: string; print: (text: string) => void; signal: AbortSignal }

const files = {
  'package.json': `${JSON.stringify({ name: 'sample', type: 'module', scripts: { test: 'node --test' } }, null, 2)}\n`,
  'sum.js': 'export const sum = (numbers) => numbers.reduce((total, number) => total - number, 0)\n',
  'sum.test.js': [
    "import { equal } from 'node:assert/strict'",
    "import { test } from 'node:test'",
    "import { sum } from './sum.js'",
    '',
    "test('adds up', () => equal(sum([1, 2, 3]), 6))",
    '',
  ].join('\n'),
} as const

/** The sample's engine: any command that edits files is one. */
const engineCommand = "sed 's/total - number/total + number/' sum.js > sum.js.new && mv sum.js.new sum.js"

const makeSample = async (directory: string): Promise<void> => {
  await mkdir(directory, { recursive: true })
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
  const git = (...args: string[]) =>
    execa(
      'git',
      [
        '-c',
        'user.name=Sample',
        '-c',
        'user.email=sample@localhost',
        '-c',
        'init.defaultBranch=main',
        ...args,
      ],
      { cwd: directory },
    )
  await git('init', '--quiet')
  await git('add', '.')
  await git(
    '-c',
    'core.hooksPath=/dev/null',
    '-c',
    'commit.gpgSign=false',
    'commit',
    '--quiet',
    '-m',
    'A sum that does not add up',
  )
}

const names = (data: Entry['data'], key: string): string =>
  Array.isArray(data[key])
    ? data[key]
        .map((result: { name: string; verdict: string }) => `${result.name}: ${result.verdict}`)
        .join(', ')
    : ''

/** One line for an entry that a watcher wants to see; null for the rest. */
const describe = ({ type, data }: Entry): string | null => {
  switch (type) {
    case 'session_created':
      return `session ${data.id} created`
    case 'workspace_prepared':
      return `worktree prepared at ${String(data.start_commit).slice(0, 12)}`
    case 'contract_proposed':
      return `contract drafted from ${Array.isArray(data.sources) ? data.sources.join(', ') : 'the request'}`
    case 'contract_baseline':
      return `baseline on the untouched tree: ${names(data, 'results')}`
    case 'contract_confirmed':
      return 'contract confirmed'
    case 'iteration_started':
      return `iteration ${data.n} of at most ${data.max}: the engine works`
    case 'contract_evaluated':
      return `contract on the ${String(data.on).replace('_', ' ')}: ${names(data, 'results')}`
    case 'state_changed':
      return `${data.from} → ${data.to}`
    case 'session_failed':
      return `failed (${data.failure_kind}): ${data.error}`
    default:
      return null
  }
}

/** Drives a session on a sample repository to its review gate through the API, printing each step as it happens. */
export const runDemo = async (stack: Stack, demo: Demo): Promise<void> => {
  const { print, signal } = demo
  const sample = join(demo.home, 'sample')
  const headers = { authorization: `Bearer ${stack.adminToken}`, 'content-type': 'application/json' }
  const call = async <Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    body?: unknown,
  ): Promise<z.infer<Schema>> => {
    const method = body === undefined ? 'GET' : 'POST'
    const response = await fetch(`${stack.url}${path}`, {
      method,
      headers,
      signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const answer: unknown = await response.json()
    if (!response.ok)
      throw new Error(`${method} ${path} answered ${response.status}: ${JSON.stringify(answer)}`)
    return schema.parse(answer)
  }
  try {
    print(`A sample session, on a repository with a failing test in ${sample}:`)
    await makeSample(sample)
    const { id } = await call(sessionSchema, '/v1/sessions', {
      repo: sample,
      intent: 'Make sum add its numbers up',
      engine: 'external:command',
      engine_command: engineCommand,
    })
    const stream = await fetch(`${stack.url}/v1/sessions/${id}/events`, {
      headers: { ...headers, accept: 'text/event-stream' },
      signal,
    })
    const events = stream.body
      ?.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream())
    for await (const message of events ?? []) {
      const entry = entrySchema.parse(JSON.parse(message.data))
      const line = describe(entry)
      if (line) print(`  ${line}`)
      if (entry.type === 'gate_opened' && entry.data.kind === 'contract') {
        const { contract_hash } = await call(sessionSchema, `/v1/sessions/${id}`)
        await call(sessionSchema, `/v1/sessions/${id}/contract/confirm`, { contract_hash })
      }
      if (entry.type === 'gate_opened' && entry.data.kind === 'approval') break
      if (entry.type === 'session_failed') return
    }
    const review = await call(reviewSchema, `/v1/sessions/${id}/review`)
    const auth = `-H "Authorization: Bearer $(cat ${demo.tokenFile})"`
    print('\nIt waits for your approval of this:\n')
    print(review.patch.replaceAll(/^/gm, '  '))
    print('Approve it, and in a few seconds the commit is a branch of the sample repository:\n')
    print(
      `  curl -sS ${stack.url}/v1/sessions/${id}/review/approve ${auth} -H 'Content-Type: application/json' -d '{"review_id":"${review.review_id}"}'`,
    )
    print(`  git -C ${sample} log --oneline --all\n`)
  } catch (error) {
    if (!signal.aborted)
      print(`The sample session could not be shown: ${error instanceof Error ? error.message : error}`)
  }
}
