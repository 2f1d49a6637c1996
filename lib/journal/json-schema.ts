import type { JsonObject } from './agent/json.ts'
import { jsonSchemaOf } from './agent/json-schema.ts'
import { entrySchema } from './entry.ts'
import { eventFactSchema } from './event-facts.ts'
import { recordFactSchema } from './facts.ts'

type Kind = 'record' | 'event'
const kinds = { record: recordFactSchema.options, event: eventFactSchema.options } as const

const typesOf = (kind: Kind): string[] => kinds[kind].map(({ shape }) => shape.type.value)

/** What the data of each type of fact may be. */
const definitions = (kind: Kind): [string, JsonObject][] =>
  kinds[kind].map(({ shape }) => [shape.type.value, { title: shape.type.value, ...jsonSchemaOf(shape.data) }])

const variant = (properties: JsonObject): JsonObject => ({ type: 'object', properties })

/** An entry of each type with its data in place. */
const inPlace = (kind: Kind): JsonObject[] =>
  typesOf(kind).map((type) =>
    variant({
      type: { const: type },
      kind: { const: kind },
      data: { $ref: `#/$defs/${type}` },
      data_ref: false,
    }),
  )

/** An entry of a known type whose data is elsewhere. */
const elsewhere = (kind: Kind): JsonObject => ({
  ...variant({
    type: { enum: typesOf(kind) },
    kind: { const: kind },
    data: { type: 'object', maxProperties: 0 },
    data_ref: { type: 'object' },
  }),
  required: ['data_ref'],
})

/** An event that is not known here, which a replay may skip. */
const unknownEvent = (): JsonObject => {
  const known = [...typesOf('record'), ...typesOf('event')].join('|')
  return variant({ type: { type: 'string', pattern: `^(?!(?:${known})$)` }, kind: { const: 'event' } })
}

/**
 * The JSON Schema (2020-12) of a line of a journal: its envelope, and by type whether it is a record or an event and what
 * its data may be. Made of the schemas that entries are read with; what JSON Schema can't say is left to those
 * (see `jsonSchemaOf`).
 */
export const journalJsonSchema = (): JsonObject => ({
  ...jsonSchemaOf(entrySchema),
  title: 'Entry of a Gatehouse journal',
  oneOf: [...inPlace('record'), ...inPlace('event'), elsewhere('record'), elsewhere('event'), unknownEvent()],
  $defs: Object.fromEntries([...definitions('record'), ...definitions('event')]),
})
