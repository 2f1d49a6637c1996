import { expect, it } from 'vitest'
import { recordJsonSchemas } from '../../../../lib/journal/agent/json-schema.ts'
import { agentFactSchema } from '../../../../lib/journal/agent/records.ts'

const schemas = recordJsonSchemas()

it('every record type has its JSON Schema', () => {
  const types = agentFactSchema.options.map((option) => option.shape.type.value)
  expect(Object.keys(schemas)).toEqual(['session_created', ...types])
  for (const [type, schema] of Object.entries(schemas))
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      ...{ type: 'object', required: ['type', 'data'], additionalProperties: false },
      properties: { type: { const: type }, data: { type: 'object' } },
    })
})

it('limits and patterns are in it', () => {
  expect(schemas.tool_call_requested).toMatchObject({
    properties: {
      data: {
        required: ['tool_call_id', 'tool_name', 'arguments'],
        properties: {
          tool_name: { maxLength: 128, pattern: '^[a-z][a-z0-9_.-]*$' },
          arguments: { type: 'object' },
        },
      },
    },
  })
})
