import { limits } from '../../limits.ts'
import { isObject } from './json.ts'

/** What is wrong with a fact as it is stated, and where in it. */
export type StatedProblem = { readonly path: readonly string[]; readonly message: string }

const plain = /^[a-z][a-z0-9_./-]*$/
const ofModel = /^[a-z][a-z0-9_./:-]*$/

const selectorProblem = (value: unknown, path: readonly string[], pattern: RegExp): StatedProblem[] =>
  typeof value !== 'string' || (pattern.test(value) && value.length <= limits.record.selector)
    ? []
    : [
        {
          path,
          message:
            `has to be a selector of 1 to ${limits.record.selector} bytes: a lower-case letter, then lower-case letters, ` +
            `digits and _ - . /${pattern === ofModel ? ' :' : ''}`,
        },
      ]

/**
 * The rules of spec/session-record.md B.5 that hold for what is stated anew, on the wire or by an engine, and that older
 * journals were not held to: how selectors are spelled, and that an approval's decision is an object. A value of another
 * kind than it should be is left to the schemas.
 */
export const statedProblems = (type: unknown, data: unknown): StatedProblem[] => {
  if (!isObject(data)) return []
  if (type === 'approval_resolved' && typeof data.decision === 'string')
    return [
      { path: ['decision'], message: 'has to be an object that names its type, like {"type": "allow_once"}' },
    ]
  if (type !== 'session_created' && type !== 'configuration_changed') return []
  const model = isObject(data.model) ? data.model : {}
  return [
    ...selectorProblem(data.profile_id, ['profile_id'], plain),
    ...selectorProblem(model.provider_id, ['model', 'provider_id'], plain),
    ...selectorProblem(model.model_id, ['model', 'model_id'], ofModel),
  ]
}
