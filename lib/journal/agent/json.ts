/** A JSON object as JSON.parse gives it. */
export type JsonObject = { readonly [key: string]: unknown }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

type Bounds = { readonly bytes: number; readonly depth: number }

const halfCharacter = 'holds half a character, an unpaired surrogate'

/** Why a value is not JSON in which no more than `depth` containers stand within each other; a scalar has depth 0. */
const misfitWithin = (value: unknown, depth: number): string | null => {
  if (typeof value === 'string') return value.isWellFormed() ? null : halfCharacter
  if (typeof value === 'number') return Number.isFinite(value) ? null : 'holds a number that is not finite'
  if (typeof value !== 'object') return typeof value === 'boolean' ? null : 'holds what is not JSON'
  if (value === null) return null
  if (depth === 0) return 'is nested too deeply'
  for (const [key, member] of Object.entries(value)) {
    const misfit = key.isWellFormed() ? misfitWithin(member, depth - 1) : halfCharacter
    if (misfit !== null) return misfit
  }
  return null
}

/** Why a value is not JSON within bounds, `bytes` of its compact encoding in UTF-8 and `depth` of nesting; null when it is. */
export const misfitOf = (value: unknown, { bytes, depth }: Bounds): string | null => {
  const misfit = misfitWithin(value, depth)
  if (misfit !== null) return misfit === 'is nested too deeply' ? `is nested deeper than ${depth}` : misfit
  return Buffer.byteLength(JSON.stringify(value)) <= bytes ? null : `is larger than ${bytes} bytes`
}
