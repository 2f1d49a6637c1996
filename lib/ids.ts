import { randomBytes } from 'node:crypto'
import { typeid } from 'typeid-js'
import { z } from 'zod'

/** The prefixes of all ids (API.md, top): an id is `<prefix>_` and a UUIDv7 in 26 base-32 characters, so ids sort by time. */
export const idPrefixes = [
  ...['ses', 'gate', 'rev', 'evt', 'tok', 'hook', 'wrk', 'cmd', 'req', 'chk', 'imp'],
  // What the agent's records speak of: run, turn, message, tool call, approval, branch.
  ...['run', 'turn', 'msg', 'call', 'apr', 'brn'],
] as const
export type IdPrefix = (typeof idPrefixes)[number]

/** A fresh id. */
export const newId = (prefix: IdPrefix): string => typeid(prefix).toString()

/** What an id with one prefix looks like. */
export const idPattern = (prefix: IdPrefix): RegExp => new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`)

/** The schema of an id with one prefix; another prefix or a malformed suffix is refused. */
export const idSchema = (prefix: IdPrefix) =>
  z.string().regex(idPattern(prefix), `has to be an id that starts with ${prefix}_`)

/** The last eight characters of a session's id: its random part, used in branch names. Lower case, so no two differ by case only. */
export const shortId = (id: string): string => id.slice(-8)

/** A bearer token's secret: 256 random bits behind a prefix that scanners can recognise. */
export const newSecret = (): string => `gh_${randomBytes(32).toString('base64url')}`
