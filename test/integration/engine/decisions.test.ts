import { describe, expect, it } from 'vitest'
import { judge } from '../../../lib/contract/verdict.ts'
import { buildPrompt } from '../../../lib/engine/prompt.ts'
import { type EngineCommand, parseEngine, resolveEngine } from '../../../lib/engine/requested.ts'
import { tools } from '../../../lib/engine/tools.ts'
import { isError } from '../../../lib/errors.ts'
import { limits } from '../../../lib/limits.ts'
import { aCheck, aContract, aRun } from '../../unit/contract/contracts.ts'

it.each([
  ['auto', { kind: 'auto', id: null }],
  ['native', { kind: 'native', id: null }],
  ['external', { kind: 'external', id: null }],
  ['external:claude-code', { kind: 'external', id: 'claude-code' }],
  ['foreman:codex', { kind: 'foreman', id: 'codex' }],
])('%s is an engine', (text, expected) => {
  expect(parseEngine(text)).toEqual(expected)
})

it.each(['', 'Auto', 'auto:x', 'native:', 'external:', 'external:a b', 'external:../x', ' native'])(
  '%j is none',
  (text) => {
    expect(parseEngine(text)).toMatchObject({ problem: expect.stringContaining('external:<id>') })
  },
)

describe('what a request gets', () => {
  it.each<[string, EngineCommand]>([
    ['external:command', 'make it so'],
    ['external:command', ['agent', '--go']],
    ['external', 'x'],
    ['auto', 'x'],
  ])('%s with %j', (requested, engine_command) => {
    const resolved = resolveEngine(requested, { engine_command })
    expect(resolved).toEqual({ engine: 'external:command', reason: expect.any(String) })
  })

  it.each<[string, EngineCommand | null, string]>([
    ['external:command', null, 'engine_command'],
    ['external:command', ' ', 'engine_command'],
    ['external:command', [], 'engine_command'],
    ['external:command', [' '], 'engine_command'],
    ['auto', null, 'engine_command'],
    ['native', 'x', 'engine'],
    ['foreman', 'x', 'engine'],
    ['external:codex', 'x', 'engine'],
    ['nonsense', 'x', 'engine'],
  ])('%s with %j is refused by name', (requested, engine_command, path) => {
    try {
      resolveEngine(requested, { engine_command })
      expect.unreachable()
    } catch (error) {
      if (!isError(error, 'engine_unavailable')) throw error
      expect(error.errors?.map((one) => one.path)).toEqual([path])
      expect(error.message).toContain(requested)
      expect(error.message).toContain('external:')
    }
  })
})

describe('the prompt', () => {
  const facts = { intent: 'Add a flag', steering: [], contract: aContract(), iteration: 1, failing: [] }
  const failing = (name: string, head: string, tail = '') =>
    judge(aCheck({ name }), [aRun({ exitCode: 1, head, tail, bytes: 100_000 })], {
      ...({ phase: 'gate', captures: {} } as const),
      artifact: () => null,
    })

  it('states the task, the contract and what counts', () => {
    const text = buildPrompt({
      ...facts,
      contract: aContract([{ name: 'unit', command: 'npm test', output_contains: 'ok "x"', runs: 2 }], {
        description: 'The flag works',
        setup: ['npm ci'],
        protect: ['test/**'],
      }),
    })
    for (const part of ['Add a flag', 'The flag works', 'npm test', '"ok \\"x\\""', 'npm ci', 'test/**']) {
      expect(text).toContain(part)
    }
    expect(text).toContain('Only the files in this tree count')
    expect(text).not.toContain('Not done yet')
  })

  it('a repair restates it with the failing checks and their output', () => {
    const text = buildPrompt({ ...facts, iteration: 3, failing: [failing('unit', 'first\n', '```\nlast\n')] })
    expect(text).toContain('Add a flag')
    expect(text).toContain('iteration 3')
    expect(text).toContain('## unit: failed (the exit code is not 0, exit code 1)')
    expect(text).toContain('````\nfirst\n\n[… 99985 bytes left out …]\n```\nlast\n````')
    expect(text).not.toContain('same as before')
    const same = buildPrompt({
      ...facts,
      iteration: 2,
      failing: [failing('unit', 'x')],
      sameOutput: ['unit'],
    })
    expect(same).toContain('The output is the same as before any work.')
  })

  it('tells of the tools only where there are any, before what a repair is about', () => {
    const without = buildPrompt({ ...facts, iteration: 2, failing: [failing('unit', 'x')] })
    const text = buildPrompt({ ...facts, iteration: 2, failing: [failing('unit', 'x')], tools: true })
    expect(without).not.toMatch(/tools/i)
    expect(buildPrompt({ ...facts, tools: false })).toBe(buildPrompt(facts))
    const [at, end] = [text.indexOf('\n# Tools that you can call\n'), text.indexOf('\n# Not done yet')]
    expect(at).toBeGreaterThan(0)
    expect(text.slice(0, at) + text.slice(end)).toBe(without)
    expect(text.slice(at, end)).toMatchInlineSnapshot(`
      "
      # Tools that you can call

      Until you stop, these tools answer on this machine: POST a JSON object with the token of this run, for example

          curl -sS "$GATEHOUSE_TOOLS_URL/ask_user" -H "Authorization: Bearer $GATEHOUSE_TOOLS_TOKEN" \\
            -d '{"prompt": "Which of the two formats is meant?"}'

      - ask_user {"prompt"}: a person answers {"text"}. The call waits for it, for as long as
        600 s; status 408 says that nobody answered, and you go on without. One question at a time;
        if your call breaks off, the same words again take it up.
      - guidance {}: what people have said since, {"messages": [{"id", "text"}]}, each of it once.
      - report_no_change {"kind", "summary", "evidence"}: you found that nothing should change; others decide. kind is
        already_satisfied, premise_wrong, not_reproducible; summary is one line.
      - report_status {"status", "reason"}: how it went, before you stop. status is
        success, failed, rate_limited, auth_required; rate_limited takes "reset_at" (RFC 3339) or
        "retry_after_secs" as well.
      - report_usage {"request_id", "input_tokens", "output_tokens", "cost_usd"}: once for each request to a model; null
        is what you do not know.
      - append_records {"records"} and journal_state {}: for programs that keep the journal of their own turns here.

      Any other status than 200 comes with {"error": {"code", "message"}}.
      "
    `)
    for (const name of Object.keys(tools)) expect(text.slice(at, end)).toContain(name)
  })

  it('guidance comes in order', () => {
    const text = buildPrompt({ ...facts, steering: ['use tabs', 'no, spaces'] })
    expect(text.indexOf('use tabs')).toBeLessThan(text.indexOf('no, spaces'))
  })

  it('is bounded: the newest guidance and some of every output survive', () => {
    const steering = Array.from({ length: 40 }, (_, at) => `${at}: ${'€'.repeat(limits.steering / 3 - 10)}`)
    const checks = Array.from({ length: limits.checks }, (_, at) => ({ name: `check ${at}`, command: 'x' }))
    const text = buildPrompt({
      ...{ intent: 'i'.repeat(limits.intent), steering, iteration: 9, tools: true },
      contract: aContract(checks),
      failing: checks.map(({ name }) => failing(name, '😀'.repeat(1000), '€'.repeat(1365))),
    })
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(limits.prompt)
    expect(text).toContain('- 39: ')
    expect(text).toMatch(/\(\d+ earlier ones are left out here.\)/)
    expect(text).toContain(`## check ${limits.checks - 1}: failed`)
    expect(text).not.toContain('\uFFFD')
  })
})
