import { TypeID } from 'typeid-js'
import type { IdPrefix } from '../../ids.ts'

const canonicalV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Whether a text is a UUID of version 7 in its one canonical, lower-case spelling. */
export const isUuidV7 = (text: string): boolean => canonicalV7.test(text)

/** The UUID of a TypeID; `typeIdOf` gives the same id back. */
export const uuidOf = (id: string): string => TypeID.fromString(id).toUUID()

/** The TypeID of a UUID. */
export const typeIdOf = (prefix: IdPrefix, uuid: string): string => TypeID.fromUUID(prefix, uuid).toString()
