import { z } from 'zod'
import type { IdPrefix } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { isObject, type JsonObject, misfitOf } from './json.ts'

/**
 * A TypeID whose UUID is of version 7 (RFC 9562): in its base-32 suffix the version shows in the eleventh and the
 * variant in the fourteenth character.
 */
export const v7IdPattern = (prefix: IdPrefix): RegExp =>
  new RegExp(
    `^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{9}[ef][0-9a-hjkmnp-tv-z]{2}[89abrstv][0-9a-hjkmnp-tv-z]{12}$`,
  )

export const v7IdSchema = (prefix: IdPrefix) =>
  z.string().regex(v7IdPattern(prefix), `has to be a UUIDv7 that starts with ${prefix}_`)

/** RFC 3339 in UTC with exactly three fractional digits, so that times compare as text. */
export const timeSchema = z.iso.datetime({ precision: 3 })

/** Non-empty text of at most `max` bytes of UTF-8, without NUL and without half characters. */
export const textSchema = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine(
      (text) => Buffer.byteLength(text) <= max && !text.includes('\0') && text.isWellFormed(),
      `has to be at most ${max} bytes, without NUL`,
    )

/** Non-empty text of at most `max` bytes of UTF-8, without control characters. */
export const lineSchema = (max: number) =>
  textSchema(max).refine((text) => !/\p{Cc}/u.test(text), 'has to be without control characters')

export const selectorSchema = textSchema(limits.record.selector)
export const toolNameSchema = z
  .string()
  .max(limits.record.toolName)
  .regex(/^[a-z][a-z0-9_.-]*$/)
export const snakeCodeSchema = z
  .string()
  .max(limits.record.failureCode)
  .regex(/^[a-z][a-z0-9_]*$/)
/** Why something was interrupted. */
export const reasonSchema = textSchema(limits.record.reason)

/** A JSON object within bounds; handed on as it is, and never copied. */
export const jsonObjectSchema = (bounds: { bytes: number; depth: number }) =>
  z
    .custom<JsonObject>(isObject, 'has to be a JSON object')
    .superRefine((value, context) => {
      const misfit = misfitOf(value, bounds)
      if (misfit !== null) context.addIssue({ code: 'custom', message: misfit })
    })
    .meta({ type: 'object' })

export const argumentsSchema = jsonObjectSchema(limits.record.arguments)

const namespace = /^[a-z](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z](?:[a-z0-9-]*[a-z0-9])?)+$/

const isMetadata = (value: unknown): boolean => {
  const { namespaces, bytes, depth } = limits.record.metadata
  // The map itself is one container more than the depth that its values may have.
  if (!isObject(value) || misfitOf(value, { bytes, depth: depth + 1 }) !== null) return false
  const keys = Object.keys(value)
  return keys.length <= namespaces && keys.every((key) => namespace.test(key))
}

/** Extension data under names that look like reverse domain names; left out when it is empty. */
export const metadataSchema = z
  .custom<JsonObject>(isMetadata, 'has to be metadata: reverse domain names, within its bounds')
  .meta({ type: 'object' })
