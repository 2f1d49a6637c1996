import type { IdPrefix } from '../../ids.ts'
import { isObject, type JsonObject } from './json.ts'
import { isUuidV7, typeIdOf, uuidOf } from './uuid.ts'

/** The fields that hold ids, with the prefix that tells a TypeID what it is an id of. */
const idFields: ReadonlyMap<string, IdPrefix> = new Map([
  ['id', 'msg'],
  ['tool_call_id', 'call'],
  ['approval_id', 'apr'],
  ['run_id', 'run'],
  ['turn_id', 'turn'],
  ['from_record_id', 'evt'],
  ['compacted_through_record_id', 'evt'],
])
const branchFields: ReadonlySet<string> = new Set(['branch_id', 'source_branch_id'])
const timeFields: ReadonlySet<string> = new Set(['timestamp', 'expires_at'])
/** Somebody else's JSON: its keys and values are left as they are. */
const opaqueFields: ReadonlySet<string> = new Set(['arguments', 'metadata', 'payload'])

const snakeCase = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
export const camelCase = (key: string): string =>
  key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** A time with an offset, in UTC; everything else is left to be judged as it is. */
export const timeIn = (text: string): string =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
    ? new Date(text).toISOString()
    : text

/** The TypeID of a canonical UUIDv7; what is none becomes a text that no schema takes for an id. */
export const idIn = (prefix: IdPrefix, text: string): string =>
  isUuidV7(text) ? typeIdOf(prefix, text) : `not a canonical UUIDv7: ${text}`

/** The root branch has the session id's text (spec/session-record.md B.10), and is `main` here. */
export const branchIn = (text: string, sessionUuid: string): string =>
  text === sessionUuid && isUuidV7(text) ? 'main' : idIn('brn', text)

export const branchOut = (branch: string, sessionId: string): string =>
  uuidOf(branch === 'main' ? sessionId : branch)

const textIn = (name: string, text: string, sessionUuid: string): string => {
  const prefix = idFields.get(name)
  if (prefix) return idIn(prefix, text)
  if (branchFields.has(name)) return branchIn(text, sessionUuid)
  return timeFields.has(name) ? timeIn(text) : text
}

/** The members of an object of the wire by our names. A null is the same as nothing; snake case is nobody's key there. */
export const membersIn = (value: JsonObject): [name: string, member: unknown][] =>
  Object.entries(value)
    .filter(([key, member]) => member !== null && !key.includes('_'))
    .map(([key, member]) => [snakeCase(key), member])

/** Members of presentations that may be null there, which is the same as nothing. */
const nullable = ['oldLine', 'newLine', 'truncation', 'patch', 'firstChangedLine', 'title']

/** The same where no other is passed over: snake case becomes a name that nobody knows. */
const strictMembersIn = (value: JsonObject): [name: string, member: unknown][] =>
  Object.entries(value)
    .filter(([key, member]) => member !== null || !nullable.includes(key))
    .map(([key, member]) => [snakeCase(key.replaceAll('_', '-')), member])

/** What may hold objects that refuse members which they don't know. */
const strictFields: ReadonlySet<string> = new Set(['model', 'presentation'])

/** Metadata that says nothing is left out on both sides. */
const isNothing = (name: string, member: unknown): boolean =>
  member === undefined || (name === 'metadata' && isObject(member) && Object.keys(member).length === 0)

/** A payload of the wire in our form: snake case, TypeIDs, times in UTC. */
export const valueIn = (value: unknown, sessionUuid: string, name = '', strict = false): unknown => {
  if (typeof value === 'string') return textIn(name, value, sessionUuid)
  if (Array.isArray(value)) return value.map((member) => valueIn(member, sessionUuid, '', strict))
  if (!isObject(value)) return value
  return Object.fromEntries(
    (strict ? strictMembersIn(value) : membersIn(value))
      .filter(([inner, member]) => strict || !isNothing(inner, member))
      .map(([inner, member]) => [
        inner,
        opaqueFields.has(inner)
          ? member
          : valueIn(member, sessionUuid, inner, strict || strictFields.has(inner)),
      ]),
  )
}

const textOut = (name: string, text: string, sessionId: string): string => {
  if (idFields.has(name)) return uuidOf(text)
  return branchFields.has(name) ? branchOut(text, sessionId) : text
}

/** Data of ours in the form of the wire. */
export const valueOut = (value: unknown, sessionId: string, name = ''): unknown => {
  if (typeof value === 'string') return textOut(name, value, sessionId)
  if (Array.isArray(value)) return value.map((member) => valueOut(member, sessionId))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, member]) => !isNothing(key, member))
      .map(([key, member]) => [
        camelCase(key),
        opaqueFields.has(key) ? member : valueOut(member, sessionId, key),
      ]),
  )
}
