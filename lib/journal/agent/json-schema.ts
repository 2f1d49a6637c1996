import { z } from 'zod'
import type { JsonObject } from './json.ts'
import { agentFactSchema, creationSchema } from './records.ts'

/**
 * The JSON Schema (2020-12) of what a schema accepts. Lengths are necessary but not sufficient: a limit in bytes,
 * agreement between fields and bounds of opaque JSON can't be said there and are held by the zod schemas alone.
 */
export const jsonSchemaOf = (schema: z.ZodType): JsonObject => ({
  ...z.toJSONSchema(schema, { unrepresentable: 'any', io: 'input' }),
})

/** The JSON Schema of every record type's fact, by type. */
export const recordJsonSchemas = (): Record<string, JsonObject> =>
  Object.fromEntries(
    [creationSchema, ...agentFactSchema.options].map((schema) => [
      schema.shape.type.value,
      jsonSchemaOf(schema),
    ]),
  )
