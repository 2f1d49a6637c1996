import { z } from 'zod'
import type { Seconds, WaitSettings } from './definition-preparation.ts'
import { TaskError } from './task-errors.ts'

/** A task's limit in seconds, taken from the state's input where the definition says so; throws States.Runtime. */
export function secondsOf(seconds: Seconds, input: unknown): number | undefined {
  if (seconds === undefined || typeof seconds === 'number') return seconds
  const read = z.int().min(1).safeParse(follow(seconds.path, input))
  if (read.success) return read.data
  const cause = `The path '${seconds.path}' must lead to a positive whole number of seconds`
  throw new TaskError({ error: 'States.Runtime', cause }, false)
}

/** How long a Wait state waits; 0 for what is neither seconds nor a time, of which the interpreter complains. */
export function waitSeconds({ secondsPath, timestampPath }: WaitSettings, input: unknown): number {
  const found = follow(secondsPath ?? timestampPath ?? '$', input)
  if (typeof found === 'number') return found
  const time = typeof found === 'string' ? Date.parse(found) : Number.NaN
  return Number.isNaN(time) ? 0 : (time - Date.now()) / 1_000
}

function follow(path: string, input: unknown): unknown {
  let found = input
  for (const field of path.split('.').slice(1)) {
    found = typeof found === 'object' && found !== null ? Reflect.get(found, field) : undefined
  }
  return found
}
