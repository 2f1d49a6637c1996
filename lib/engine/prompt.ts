import type { CheckResult, Contract, ContractCheck, VerdictReason } from '../contract/schema.ts'
import { limits } from '../limits.ts'
import { excessTexts } from '../process/bounds/excess.ts'
import { firstBytes, lastBytes } from '../text/shorten.ts'
import { engineStatusSchema, noChangeKindSchema } from './tools.ts'

export type PromptFacts = {
  intent: string
  /** Guidance that a person gave since, oldest first. */
  steering: readonly string[]
  contract: Contract
  /** From 1. */
  iteration: number
  /** The results of the last evaluation that were not green; empty on a first pass. */
  failing: readonly CheckResult[]
  /** Names of those whose output has been the same since before any work. */
  sameOutput?: readonly string[]
  /** Whether this run has tools to call (lib/engine/tools.ts). */
  tools?: boolean
}

/**
 * The whole task in one text, restated on every iteration because an engine keeps nothing
 * (spec/coder-session.md 4.5): the intent, the guidance, the contract, and on a repair the failing checks
 * with their output. At most `limits.prompt` bytes: long output is shortened first, then the oldest guidance
 * is left out, and what is missing is named.
 */
export const buildPrompt = (facts: PromptFacts): string => {
  const task = section('Task', facts.intent.trim())
  const tools = facts.tools ? toolsSection : ''
  const rules = [contractSection(facts.contract), protectSection(facts.contract), rulesSection, tools]
  const fixed = [task, ...rules].join('\n')
  const room = Math.max(0, limits.prompt - Buffer.byteLength(fixed))
  const failing = failingSection(facts, Math.floor(room / 2))
  const steering = steeringSection(facts.steering, room - Buffer.byteLength(failing))
  return `${bounded([task, steering, ...rules, failing].filter((part) => part !== '').join('\n'))}\n`
}

const section = (title: string, body: string): string => `# ${title}\n\n${body}\n`

const bounded = (text: string): string => cut(text, limits.prompt - 1).text.trimEnd()

const steeringSection = (steering: readonly string[], room: number): string => {
  const kept: string[] = []
  let left = room - 512
  for (const text of steering.toReversed()) {
    left -= Buffer.byteLength(text) + 8
    if (left < 0) break
    kept.unshift(`- ${text.trim().replaceAll('\n', '\n  ')}`)
  }
  if (steering.length === 0) return ''
  const omitted = steering.length - kept.length
  const note = omitted === 0 ? [] : [`(${omitted} earlier ones are left out here.)`]
  return section('Guidance given since, newest last', [...note, ...kept].join('\n'))
}

const contractSection = (contract: Contract): string => {
  const setup = contract.setup.map((command) => `    ${indented(command)}`)
  const checks = contract.checks.filter((check) => !check.baseline).map(describeCheck)
  return section(
    'Done means',
    [
      ...(contract.description.trim() === '' ? [] : [contract.description.trim(), '']),
      'All of these checks pass. Each command runs in a shell at the root of the tree.',
      ...(setup.length === 0 ? [] : ['', 'In a fresh tree these commands run first:', '', ...setup]),
      '',
      ...checks,
    ].join('\n'),
  )
}

const describeCheck = (check: ContractCheck): string => {
  const expectations = [
    ...(check.expect_exit_zero ? ['exits 0'] : []),
    ...(check.output_contains === null ? [] : [`its output holds ${JSON.stringify(check.output_contains)}`]),
    ...(check.differential === null ? [] : [describeDifferential(check.differential)]),
    `within ${check.timeout_secs} s`,
    ...(check.runs > 1 ? [`in each of ${check.runs} runs`] : []),
  ]
  return `- ${check.name}: ${expectations.join(', ')}\n\n    ${indented(check.command)}\n`
}

const describeDifferential = ({ baseline, expect }: NonNullable<ContractCheck['differential']>): string => {
  if (typeof expect === 'string') return `its output is ${expect} against "${baseline}" on the untouched tree`
  const { min = '-∞', max = '∞' } = expect.delta_within
  return `its number minus that of "${baseline}" on the untouched tree lies within ${min} and ${max}`
}

const protectSection = (contract: Contract): string =>
  contract.protect.length === 0
    ? ''
    : section(
        'Leave these paths exactly as they are',
        `A change to a path that one of these gitignore patterns matches fails the contract:\n\n${contract.protect
          .map((pattern) => `    ${pattern}`)
          .join('\n')}`,
      )

const rulesSection = section(
  'How your work is taken over',
  [
    'Work in the current directory, the root of a git worktree that is only for this task.',
    'Only the files in this tree count: leave the finished work in them. You need not commit; whatever is not',
    'ignored by git is taken over. Do not push and do not change remotes.',
    'When you stop, the checks are run by someone else on a clean checkout of exactly these files. What you say',
    'about them is not read; ignored files, background processes and anything outside the tree are gone by then.',
  ].join('\n'),
)

const toolsSection = section(
  'Tools that you can call',
  [
    'Until you stop, these tools answer on this machine: POST a JSON object with the token of this run, for example',
    '',
    '    curl -sS "$GATEHOUSE_TOOLS_URL/ask_user" -H "Authorization: Bearer $GATEHOUSE_TOOLS_TOKEN" \\',
    '      -d \'{"prompt": "Which of the two formats is meant?"}\'',
    '',
    '- ask_user {"prompt"}: a person answers {"text"}. The call waits for it, for as long as',
    `  ${limits.questionMs / 1000} s; status 408 says that nobody answered, and you go on without. One question at a time;`,
    '  if your call breaks off, the same words again take it up.',
    '- guidance {}: what people have said since, {"messages": [{"id", "text"}]}, each of it once.',
    '- report_no_change {"kind", "summary", "evidence"}: you found that nothing should change; others decide. kind is',
    `  ${noChangeKindSchema.options.join(', ')}; summary is one line.`,
    '- report_status {"status", "reason"}: how it went, before you stop. status is',
    `  ${engineStatusSchema.options.join(', ')}; rate_limited takes "reset_at" (RFC 3339) or`,
    '  "retry_after_secs" as well.',
    '- report_usage {"request_id", "input_tokens", "output_tokens", "cost_usd"}: once for each request to a model; null',
    '  is what you do not know.',
    '- append_records {"records"} and journal_state {}: for programs that keep the journal of their own turns here.',
    '',
    'Any other status than 200 comes with {"error": {"code", "message"}}.',
  ].join('\n'),
)

const failingSection = (facts: PromptFacts, room: number): string => {
  if (facts.failing.length === 0) return ''
  const each = Math.floor(room / facts.failing.length) - 512
  return section(
    `Not done yet: this is iteration ${facts.iteration}`,
    [
      'Your earlier work is in the tree. These checks are not green; find the cause and repair it.',
      ...facts.failing.map((result) =>
        describeFailure(result, facts.sameOutput?.includes(result.name) === true, each),
      ),
    ].join('\n\n'),
  )
}

const describeFailure = (result: CheckResult, isSame: boolean, room: number): string => {
  const facts = [
    reasonTexts[result.reason],
    ...(result.exit_code === null ? [] : [`exit code ${result.exit_code}`]),
    ...(result.signal === null ? [] : [result.signal]),
  ]
  const same = isSame ? 'The output is the same as before any work.\n\n' : ''
  return `## ${result.name}: ${result.verdict.replaceAll('_', ' ')} (${facts.join(', ')})\n\n${same}${outputOf(result, room)}`
}

const reasonTexts: Record<VerdictReason, string> = {
  ok: 'as it should be',
  exit_code: 'the exit code is not 0',
  suspect_environment: 'the exit code is not 0; its surroundings may be at fault',
  output_missing: 'the output lacks what it has to hold',
  output_not_json: 'the output is not JSON',
  differential: 'the comparison with the untouched tree does not hold',
  protected_path_changed: 'protected paths were changed; put them back as they were',
  embedded_repository: 'a directory is a git repository of its own and cannot be delivered; remove its .git',
  command_not_found: 'a command was not found',
  not_executable: 'a file is not executable',
  runner_missing: 'what its command runs is not there',
  spawn_failed: 'it could not be started',
  foreign_surroundings: 'above the tree stood files that are not part of it',
  signal: 'it was killed by a signal',
  timed_out: 'it took too long',
  deadline: 'the session had no time left for it',
  ...excessTexts,
  runs_disagree: 'it passes only some of the time',
  capture: 'only recorded',
  setup_failed: 'the contract’s setup failed before it',
  capture_missing: 'the value of the untouched tree is missing',
  cancelled: 'it was cancelled',
}

const outputOf = (result: CheckResult, room: number): string => {
  const shownBytes = Buffer.byteLength(result.output_head) + Buffer.byteLength(result.output_tail)
  if (shownBytes === 0) return 'It printed nothing.'
  const head = cut(result.output_head, Math.max(0, Math.floor(room / 3)))
  const tail = cutStart(result.output_tail, Math.max(0, Math.floor((room * 2) / 3)))
  const omitted = Math.max(0, result.output_bytes - shownBytes) + head.omitted + tail.omitted
  const gap = omitted === 0 ? '' : `\n[… ${omitted} bytes left out …]\n`
  const text = `${head.text}${gap}${tail.text}`
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)))
  return `Its output:\n\n${fence}\n${text.trimEnd()}\n${fence}`
}

const indented = (command: string): string => command.replaceAll('\n', '\n    ')

const cut = (text: string, max: number) => kept(text, firstBytes(text, max))
const cutStart = (text: string, max: number) => kept(text, lastBytes(text, max))

const kept = (whole: string, text: string): { text: string; omitted: number } => ({
  text,
  omitted: Buffer.byteLength(whole) - Buffer.byteLength(text),
})
