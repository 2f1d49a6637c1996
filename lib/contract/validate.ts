import type { FieldError } from '../errors.ts'
import { limits } from '../limits.ts'
import { hasHidden } from '../text/visible.ts'
import { parseAssertion } from './assertion.ts'
import { canonicalContract } from './hash.ts'
import { isNoOp } from './no-op.ts'
import { embeddedCheck, patternProblem, protectCheck } from './protect.ts'
import type { Contract, ContractCheck, Provenance } from './schema.ts'

/**
 * What is structurally wrong with a contract (spec/coder-session.md 5.2); empty means valid. Checks that say
 * nothing about the work (`true`, `cargo --version`) are refused in a draft; a person may give one.
 */
export const validateContract = (contract: Contract, facts: { provenance: Provenance }): FieldError[] => {
  const captures = new Set(contract.checks.filter((check) => check.baseline).map((check) => check.name))
  const isDraft = facts.provenance === 'model_derived' || facts.provenance === 'runtime_generated'
  return [
    ...wholeErrors(contract),
    ...contract.setup.flatMap((command, index) => commandErrors(command, `setup.${index}`)),
    ...protectErrors(contract.protect),
    ...contract.checks.flatMap((check, index) => {
      const first = contract.checks.findIndex((other) => other.name.trim() === check.name.trim())
      return [
        ...nameErrors(check.name, `checks.${index}.name`, first < index ? first : null),
        ...commandErrors(check.command, `checks.${index}.command`),
        ...(isDraft && !check.baseline ? noOpErrors(check.command, `checks.${index}.command`) : []),
        ...assertionErrors(check, `checks.${index}`),
        ...differentialErrors(check, `checks.${index}.differential`, captures),
      ]
    }),
  ]
}

/** Things that are allowed and rarely meant, as sentences for whoever confirms the contract. */
export const contractWarnings = (contract: Contract): string[] =>
  contract.checks.flatMap(({ name, command }) => {
    const reader = hastyReader(command)
    return reader === null
      ? []
      : [
          `Check "${name}" pipes into ${reader}, which leaves as soon as it has seen enough: the command before ` +
            'it can die of SIGPIPE (141 under pipefail). Run that command by itself and use output_contains.',
        ]
  })

/** Words that can stand before the name of a program: variables, and programs that run another. */
const before = String.raw`(?:(?:[A-Za-z_]\w*=\S*|command|exec|env|nice|time)\s+)*`
const piped = (program: string, end: string): RegExp =>
  new RegExp(String.raw`\|&?\s*${before}(?:\S*/)?(?:${program})${end}`)
const quietSearch = piped(
  '[efz]?grep|rg|ag|ugrep',
  String.raw`\s+(?:[^|;&\n]*\s)?(?:-[a-zA-Z]*q[a-zA-Z]*|--quiet|--silent)(?:\s|$)`,
)
const headOf = piped('head', String.raw`(?:\s|$)`)

/** What of a command reads less of its input than there may be; null for none. `head` does harm only under pipefail. */
const hastyReader = (command: string): string | null => {
  if (quietSearch.test(command)) return 'a quiet grep'
  return /\bpipefail\b/.test(command) && headOf.test(command) ? 'head' : null
}

const wholeErrors = (contract: Contract): FieldError[] => {
  const errors: FieldError[] = []
  if (contract.checks.length === 0) errors.push({ path: 'checks', message: 'there has to be a check' })
  else if (contract.checks.every((check) => check.baseline)) {
    errors.push({ path: 'checks', message: 'all checks are baseline captures; none of them gates anything' })
  }
  if (Buffer.byteLength(canonicalContract(contract)) > limits.contract) {
    errors.push({ path: '', message: `the contract is larger than ${limits.contract} bytes` })
  }
  return errors
}

const bracketed = /^(?:<[^<>]*>|\[[^[\]]*\]|\{[^{}]*\})$/
const fillerWord = /^(?:(?:(?:your|the) )?check[ _-]?name|name|to ?do|tbd|fixme|placeholder|xxx+|\.{2,}|…)$/i

const nameErrors = (name: string, path: string, sameAs: number | null): FieldError[] => {
  const text = name.trim()
  if (text === '') return [{ path, message: 'the name is empty' }]
  if (sameAs !== null) return [{ path, message: `checks.${sameAs} has the same name` }]
  if (hasHidden(name)) {
    return [{ path, message: 'the name has to be one line without invisible characters' }]
  }
  if (text === protectCheck || text === embeddedCheck) {
    return [{ path, message: `the name ${text} belongs to a result of our own` }]
  }
  return bracketed.test(text) || fillerWord.test(text)
    ? [{ path, message: 'this is a placeholder, not a name' }]
    : []
}

const commandErrors = (command: string, path: string): FieldError[] => {
  if (command.trim() === '') return [{ path, message: 'the command is empty' }]
  return command.includes('\0') ? [{ path, message: 'a command cannot hold a NUL character' }] : []
}

const noOpErrors = (command: string, path: string): FieldError[] =>
  isNoOp(command) ? [{ path, message: 'this passes whatever the work is; it gates nothing' }] : []

const assertionErrors = (check: ContractCheck, path: string): FieldError[] => {
  const at = `${path}.output_contains`
  if (check.baseline) {
    const errors: FieldError[] = []
    const message = 'a baseline capture only records a value; it cannot assert'
    if (check.output_contains !== null) errors.push({ path: at, message })
    if (check.differential !== null) errors.push({ path: `${path}.differential`, message })
    if (check.runs !== 1) errors.push({ path: `${path}.runs`, message: 'a baseline capture runs once' })
    return errors
  }
  if (!check.expect_exit_zero && check.output_contains === null && check.differential === null) {
    return [{ path, message: 'this check asserts nothing: any exit code and any output would pass' }]
  }
  if (check.output_contains === null) return []
  const assertion = parseAssertion(check.output_contains)
  return 'problem' in assertion ? [{ path: at, message: assertion.problem }] : []
}

const differentialErrors = (
  check: ContractCheck,
  path: string,
  captures: ReadonlySet<string>,
): FieldError[] => {
  if (check.differential === null) return []
  const { baseline, expect } = check.differential
  const errors: FieldError[] = []
  if (!captures.has(baseline)) {
    errors.push({ path: `${path}.baseline`, message: 'no check with this name has baseline: true' })
  }
  if (typeof expect === 'object') {
    const { min, max } = expect.delta_within
    const at = `${path}.expect.delta_within`
    if (min === undefined && max === undefined) errors.push({ path: at, message: 'needs min or max' })
    if (min !== undefined && max !== undefined && min > max) {
      errors.push({ path: at, message: 'min is greater than max' })
    }
  }
  return errors
}

const protectErrors = (patterns: readonly string[]): FieldError[] =>
  patterns.flatMap((pattern, index) => {
    const problem = patternProblem(pattern, index)
    return problem === null ? [] : [{ path: `protect.${index}`, message: problem }]
  })
