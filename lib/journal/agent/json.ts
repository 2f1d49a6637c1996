/** A JSON object as JSON.parse gives it. */
export type JsonObject = { readonly [key: string]: unknown }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a value is JSON in which no more than `depth` containers stand within each other; a scalar has depth 0. */
const isJsonWithin = (value: unknown, depth: number): boolean => {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object') return typeof value === 'boolean'
  if (value === null) return true
  if (depth === 0) return false
  if (Array.isArray(value)) return value.every((member) => isJsonWithin(member, depth - 1))
  return Object.entries(value).every(([key, member]) => key.isWellFormed() && isJsonWithin(member, depth - 1))
}

/** Whether a value is JSON within bounds: `bytes` of its compact encoding in UTF-8, `depth` of nesting. */
export const fits = (value: unknown, bounds: { bytes: number; depth: number }): boolean =>
  isJsonWithin(value, bounds.depth) && Buffer.byteLength(JSON.stringify(value)) <= bounds.bytes
