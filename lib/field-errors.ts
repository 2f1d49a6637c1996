import type { z } from 'zod'
import type { FieldError } from './errors.ts'

/** Where a value does not validate, in the form of a problem answer; `at` is where in the request the value stands. */
export const fieldErrors = (
  issues: readonly z.core.$ZodIssue[],
  at: readonly PropertyKey[] = [],
): FieldError[] =>
  issues.flatMap((issue) => {
    const path = [...at, ...issue.path].map(String).join('.')
    return issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({
          path: [path, key].filter(Boolean).join('.'),
          message: 'is not a known field',
        }))
      : [{ path, message: issue.message }]
  })
