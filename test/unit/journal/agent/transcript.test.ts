import { expect, it } from 'vitest'
import { z } from 'zod'
import { modelMessageSchema } from '../../../../lib/journal/agent/model-message.ts'
import { replay } from '../../../../lib/journal/agent/reducer.ts'
import { activeView } from '../../../../lib/journal/agent/state.ts'
import { modelMessages } from '../../../../lib/journal/agent/transcript.ts'
import { history, namesIn, readJson, requireRecord } from './fixtures.ts'

/** A golden file: the history that a session has, further records behind it, and the messages a model is given then. */
const goldenSchema = z.strictObject({
  about: z.string(),
  given: z.string(),
  records: z.array(z.record(z.string(), z.unknown())),
  messages: z.array(z.unknown()),
})

const golden = namesIn('transcripts/').map((file) => ({
  file,
  ...goldenSchema.parse(readJson(`transcripts/${file}`)),
}))

it.each(golden)('$file: $about', ({ given, records, messages }) => {
  const told = modelMessages(activeView(replay([...history(given), ...records.map(requireRecord)])))
  for (const message of told) modelMessageSchema.parse(message)
  expect(JSON.parse(JSON.stringify(told))).toEqual(messages)
})

it('a presentation is no part of it', () => {
  const file = golden.find(({ records }) => JSON.stringify(records).includes('"presentation"'))
  expect(JSON.stringify(file?.messages)).not.toContain('code_change')
  expect(file).toBeDefined()
})
