import { writeSync } from 'node:fs'
import { z } from 'zod'
import type { Actor } from '../../lib/journal/entry.ts'
import type { Change, SessionItem } from '../../lib/session/item.ts'
import { connect, serviceSettingsSchema } from '../../lib/store/clients.ts'
import { transition } from '../../lib/store/effects.ts'
import { createPlatform } from '../../lib/store/platform.ts'
import { testKeys } from '../support/keys.ts'

/**
 * One writer as a program, for a test that kills it: makes COUNT appends to a journal, numbered from FROM on and several
 * at once, and says of each that its call has returned, with its sequence.
 */
const { SETTINGS, TEAM, SESSION, WRITER, FROM, COUNT } = z
  .object({
    SETTINGS: z.string().transform((text) => serviceSettingsSchema.parse(JSON.parse(text))),
    ...{ TEAM: z.string(), SESSION: z.string(), WRITER: z.string() },
    ...{ FROM: z.coerce.number(), COUNT: z.coerce.number() },
  })
  .parse(process.env)

const id = { team: TEAM, id: SESSION }
const actor: Actor = { kind: 'worker', id: WRITER }
const nothing = async (): Promise<never> => {
  throw new Error('a writer starts no workers')
}
const clients = connect(SETTINGS, testKeys)
const platform = createPlatform({
  clients,
  settings: SETTINGS,
  compute: { launch: nothing, running: nothing, list: nothing, stop: nothing, forget: nothing },
  policy: { allowLocalRepositories: true, concurrency: 1 },
})

/** The last sequence that is known to be in the journal, as a writer tells it with its next append. */
let drained = -1

/** Appends what waits with one write, as a worker sends its events; the sequence of the first. */
const append = async (numbers: readonly number[]): Promise<number> => {
  const place = { sequence: -1 }
  const change = ({ journal_head }: SessionItem): Change => {
    place.sequence = journal_head.sequence + 1
    const facts = numbers.map((n) => ({ type: 'error' as const, data: { message: `${WRITER}/${n}` } }))
    return { actor, drained, facts }
  }
  // Most decisions note for themselves what they carried out.
  if (numbers.length < 4) {
    await transition(platform, id, change)
    return place.sequence
  }
  const item = await platform.sessions.update(id, change)
  await platform.journals.drain(item)
  drained = Math.max(drained, item.journal_head.sequence)
  return place.sequence
}

let next = FROM
/** Batches of every size up to twenty-four. */
for (let size = 1; next < FROM + COUNT; size = (size % 24) + 1) {
  const numbers = Array.from({ length: Math.min(size, FROM + COUNT - next) }, () => next++)
  const first = await append(numbers)
  // At once, and before anything else can happen: what is said stays said when the process is killed.
  numbers.forEach((acknowledged, at) => {
    writeSync(1, `${JSON.stringify({ acknowledged, sequence: first + at })}\n`)
  })
}
for (const client of [clients.dynamo, clients.s3, clients.sfn]) client.destroy()
