import { z } from 'zod'

const typed = ['String', 'Numeric', 'Boolean', 'Timestamp']
const orders = ['Equals', 'LessThan', 'GreaterThan', 'LessThanEquals', 'GreaterThanEquals']
const comparisons = new Set([
  ...typed
    .flatMap((type) => (type === 'Boolean' ? ['BooleanEquals'] : orders.map((order) => type + order)))
    .flatMap((name) => [name, `${name}Path`]),
  'StringMatches',
  ...['Null', 'Present', 'Numeric', 'String', 'Boolean', 'Timestamp'].map((type) => `Is${type}`),
])
const beside = new Set(['Variable', 'Next', 'Comment'])

/** A rule of a Choice state, all of which the interpreter evaluates as Step Functions would. */
export const choiceRule = z.looseObject({}).superRefine((rule, context) => {
  for (const message of problemsOf(rule, true)) context.addIssue({ code: 'custom', message })
})

function problemsOf(rule: unknown, outermost: boolean): string[] {
  if (typeof rule !== 'object' || rule === null) return ['a choice rule must be an object']
  const fields = Object.entries(rule)
  const tests = fields.filter(([field]) => !beside.has(field))
  const [test] = tests
  const hasNext = 'Next' in rule && typeof rule.Next === 'string'
  return [
    ...(hasNext === outermost ? [] : ['a choice rule needs Next, and a nested one none']),
    ...(test && tests.length === 1
      ? testProblems(test, rule)
      : ['a choice rule needs exactly one comparison']),
  ]
}

function testProblems([name, operand]: [string, unknown], rule: object): string[] {
  if (name === 'And' || name === 'Or') {
    return Array.isArray(operand) && operand.length > 0
      ? operand.flatMap((nested) => problemsOf(nested, false))
      : [`${name} needs a list of rules`]
  }
  if (name === 'Not') return problemsOf(operand, false)
  if (!comparisons.has(name)) return [`the comparison ${name} is not run`]
  const variable = 'Variable' in rule && typeof rule.Variable === 'string' && rule.Variable.startsWith('$')
  const odd = name === 'StringMatches' && /[?\\]/.test(String(operand))
  return [
    ...(variable ? [] : [`${name} needs a Variable that is a path`]),
    ...(odd ? ['StringMatches is run with * alone, without ? or escapes'] : []),
  ]
}
