import type { StateMachineDefinition } from 'aws-local-stepfunctions'
import { z } from 'zod'
import { choiceRule } from './choice-rules.ts'
import { longestWaitSeconds } from './limits.ts'
import { transitionProblems } from './transitions.ts'

const common = {
  Comment: z.string().optional(),
  QueryLanguage: z.literal('JSONPath', { error: 'only the JSONPath query language is run' }).optional(),
}
const path = z.string().nullable().optional()
const template = z.json().optional()
const flow = { Next: z.string().optional(), End: z.literal(true).optional() }
const inOut = { InputPath: path, OutputPath: path }
const seconds = z.int().min(1)
const referencePath = z
  .string()
  .regex(/^\$(\.[A-Za-z_][\w-]*)+$/, 'only a path of plain field names ($.a.b) is followed')
const errorNames = z.array(z.string()).min(1)

const retrier = z.strictObject({
  Comment: z.string().optional(),
  ErrorEquals: errorNames,
  IntervalSeconds: seconds.optional(),
  MaxAttempts: z.int().min(0).optional(),
  BackoffRate: z.number().min(1).optional(),
  MaxDelaySeconds: seconds.optional(),
  JitterStrategy: z.enum(['NONE', 'FULL']).optional(),
})
const catcher = z.strictObject({
  Comment: z.string().optional(),
  ErrorEquals: errorNames,
  Next: z.string(),
  ResultPath: path,
})

const inputPaths = ['SecondsPath', 'TimestampPath', 'TimeoutSecondsPath', 'HeartbeatSecondsPath']
const pathsNeedInput = 'a path to a number of seconds or a time is not run beside InputPath'
function pathsStartAtInput(state: object): boolean {
  return !('InputPath' in state) || !inputPaths.some((field) => field in state)
}

const task = z
  .strictObject({
    ...common,
    ...flow,
    ...inOut,
    Type: z.literal('Task'),
    Resource: z.enum(['arn:aws:states:::lambda:invoke', 'arn:aws:states:::lambda:invoke.waitForTaskToken'], {
      error: 'only arn:aws:states:::lambda:invoke and lambda:invoke.waitForTaskToken are run',
    }),
    Parameters: z.strictObject({
      FunctionName: z.string().min(1),
      Payload: template,
      'Payload.$': z.string().optional(),
    }),
    ResultSelector: template,
    ResultPath: path,
    Retry: z.array(retrier).optional(),
    Catch: z.array(catcher).optional(),
    TimeoutSeconds: seconds.optional(),
    TimeoutSecondsPath: referencePath.optional(),
    HeartbeatSeconds: seconds.optional(),
    HeartbeatSecondsPath: referencePath.optional(),
  })
  .refine(
    (state) => !state.Resource.endsWith('.waitForTaskToken') || asksForToken(state.Parameters),
    'Parameters of a waitForTaskToken task must pass $$.Task.Token on',
  )
  .refine(
    (state) => (state.HeartbeatSeconds ?? 0) < (state.TimeoutSeconds ?? Number.POSITIVE_INFINITY),
    'HeartbeatSeconds must be smaller than TimeoutSeconds',
  )
  .refine(pathsStartAtInput, pathsNeedInput)

const asksForToken = (parameters: unknown) =>
  JSON.stringify(parameters).includes('"$$.Task.Token"') || JSON.stringify(parameters).includes('"$$"')

const pass = z.strictObject({
  ...common,
  ...flow,
  ...inOut,
  Type: z.literal('Pass'),
  Parameters: template,
  ResultPath: path,
  Result: template.refine((result) => result === undefined || Boolean(result), {
    error: 'a Result of false, 0, "" or null is not run',
  }),
})
const choice = z.strictObject({
  ...common,
  ...inOut,
  Type: z.literal('Choice'),
  Choices: z.array(choiceRule).min(1),
  Default: z.string().optional(),
})
const wait = z
  .strictObject({
    ...common,
    ...flow,
    ...inOut,
    Type: z.literal('Wait'),
    Seconds: z.int().min(0).max(longestWaitSeconds).optional(),
    SecondsPath: referencePath.optional(),
    Timestamp: z.iso.datetime({ offset: true }).optional(),
    TimestampPath: referencePath.optional(),
  })
  .refine(pathsStartAtInput, pathsNeedInput)
const succeed = z.strictObject({ ...common, ...inOut, Type: z.literal('Succeed') })
const plainPath = z.string().startsWith('$', 'only a path is followed, not an intrinsic function').optional()
const fail = z.strictObject({
  ...common,
  Type: z.literal('Fail'),
  Error: z.string().optional(),
  ErrorPath: plainPath,
  Cause: z.string().optional(),
  CausePath: plainPath,
})

const machine = z.strictObject({
  ...common,
  Version: z.literal('1.0').optional(),
  StartAt: z.string(),
  TimeoutSeconds: seconds.optional(),
  States: z.record(
    z.string(),
    z.discriminatedUnion('Type', [task, pass, choice, wait, succeed, fail], {
      error: (issue) =>
        issue.code === 'invalid_union'
          ? 'this type of state is not run (Map and Parallel neither)'
          : undefined,
    }),
  ),
})

/** A definition all of which the interpreter does as Step Functions would. */
export type SupportedDefinition = z.output<typeof machine>

/**
 * Reads a definition. Throws, naming each state and field, when it is not valid Amazon States Language or holds anything
 * that would not be done as Step Functions does it: JSONata, Assign, Map and Parallel, resources other than
 * `lambda:invoke` with or without `.waitForTaskToken`, intrinsic functions that the interpreter lacks.
 */
export function readDefinition(name: string, definition: object): SupportedDefinition {
  const parsed = machine.safeParse(definition)
  const refuse = (problems: string[]) =>
    new Error(`state machine "${name}" can't be run here: ${problems.join('; ')}`)
  if (!parsed.success) throw refuse(parsed.error.issues.map(describe))
  const problems = [...transitionProblems(parsed.data), ...unknownIntrinsics(parsed.data)]
  if (problems.length > 0) throw refuse(problems)
  return parsed.data
}

/** Whether the interpreter can be given this. */
export const isInterpretable = (definition: object): definition is StateMachineDefinition =>
  machine.safeParse(definition).success

function describe(issue: z.core.$ZodIssue): string {
  const [top, state, ...field] = issue.path.map(String)
  const keys = 'keys' in issue ? ` (${issue.keys.join(', ')})` : ''
  const where =
    top === 'States' && state !== undefined ? [`state "${state}"`, ...field] : issue.path.map(String)
  const message = issue.code === 'unrecognized_keys' ? `not run here${keys}` : issue.message
  return [...where, message].filter((part) => part !== '').join(': ')
}

function unknownIntrinsics(definition: SupportedDefinition): string[] {
  return Object.entries(definition.States).flatMap(([state, body]) => {
    const called = [...JSON.stringify(body).matchAll(/\.\$":"(States\.(?:[^"\\]|\\.)*)"/g)]
      .flatMap(([, expression = '']) => [...expression.matchAll(/States\.\w+(?=\()/g)])
      .map(([call]) => call)
    return called
      .filter((call) => !intrinsics.has(call))
      .map((call) => `state "${state}": the intrinsic function ${call} is not run`)
  })
}

const intrinsics = new Set(
  [
    ...['Format', 'StringToJson', 'JsonToString', 'Array', 'ArrayPartition', 'ArrayContains', 'ArrayRange'],
    ...['ArrayGetItem', 'ArrayLength', 'ArrayUnique', 'Base64Encode', 'Base64Decode', 'Hash', 'JsonMerge'],
    ...['MathRandom', 'MathAdd', 'StringSplit', 'UUID'],
  ].map((name) => `States.${name}`),
)
