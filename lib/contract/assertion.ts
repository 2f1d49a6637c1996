import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'

/** What `output_contains` asks for: bytes, or a value in JSON output (`$json:<pointer>=<json>`, RFC 6901). */
export type OutputAssertion =
  | { kind: 'bytes'; needle: string }
  | { kind: 'json'; pointer: string; expected: z.core.util.JSONType }

const jsonPrefix = '$json:'

/** Reads an `output_contains`; a malformed `$json:` form gives a problem instead. */
export const parseAssertion = (text: string): OutputAssertion | { problem: string } => {
  if (!text.startsWith(jsonPrefix)) return { kind: 'bytes', needle: text }
  const form = text.slice(jsonPrefix.length)
  let pointerSeen = false
  // A key may itself hold `=`: the first one that leaves a pointer before it and JSON after it divides.
  for (let at = form.indexOf('='); at !== -1; at = form.indexOf('=', at + 1)) {
    const pointer = form.slice(0, at)
    if (!isPointer(pointer)) continue
    pointerSeen = true
    const expected = parseJson(form.slice(at + 1))
    if (expected !== undefined) return { kind: 'json', pointer, expected }
  }
  if (!form.includes('=')) return { problem: `has to have the form ${jsonPrefix}<pointer>=<json>` }
  return {
    problem: pointerSeen
      ? 'the value after = is not JSON (a string needs its double quotes)'
      : 'the pointer has to be empty or start with /, with ~ only as ~0 or ~1 (RFC 6901)',
  }
}

/** Whether JSON output holds the expected value at the pointer, compared as values. */
export const holdsJson = (
  output: string,
  assertion: { pointer: string; expected: z.core.util.JSONType },
): 'met' | 'missing' | 'not_json' => {
  const document = parseJson(output)
  if (document === undefined) return 'not_json'
  const found = follow(document, assertion.pointer)
  return found !== undefined && isDeepStrictEqual(found, assertion.expected) ? 'met' : 'missing'
}

const isPointer = (text: string): boolean => /^(\/([^~/]|~[01])*)*$/.test(text)

const jsonSchema = z.json()

const parseJson = (text: string): z.core.util.JSONType | undefined => {
  try {
    return jsonSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

const follow = (document: z.core.util.JSONType, pointer: string): z.core.util.JSONType | undefined => {
  let here: z.core.util.JSONType | undefined = document
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(here)) here = /^(0|[1-9]\d*)$/.test(key) ? here[Number(key)] : undefined
    else if (typeof here === 'object' && here !== null)
      here = Object.hasOwn(here, key) ? here[key] : undefined
    else return undefined
  }
  return here
}
