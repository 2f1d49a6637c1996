import { expect, test } from 'vitest'
import { createReporter } from '../../../functions/worker/reporter.ts'
import type { EventFact } from '../../../lib/journal/event-facts.ts'
import { limits } from '../../../lib/limits.ts'

const collect = () => {
  const batches: EventFact[][] = []
  const reporter = createReporter(async (_id, facts) => {
    batches.push(facts)
  })
  const all = async () => {
    const rest = await reporter.drain()
    return [...batches.flat(), ...rest]
  }
  return { batches, reporter, all }
}

const started = (name: string): EventFact => ({ type: 'check_started', data: { name } })

test('events keep their order across batches and the rest, engine output between them included', async () => {
  const { reporter, all } = collect()
  for (let index = 0; index < 500; index++) {
    reporter.event(started(`c${index}`))
    if (index === 250) reporter.engineOutput(1, 'in the middle')
  }
  const facts = await all()
  expect(facts).toHaveLength(501)
  const place = facts.findIndex(({ type }) => type === 'engine_output')
  expect(facts.slice(place - 1, place + 2)).toMatchObject([
    { data: { name: 'c250' } },
    { data: { text: 'in the middle', omitted_bytes: 0 } },
    { data: { name: 'c251' } },
  ])
})

test('no batch is larger than the journal takes', async () => {
  const { batches, reporter, all } = collect()
  for (let index = 0; index < 60; index++) {
    reporter.engineOutput(1, '\u001b'.repeat(40_000))
    reporter.event(started('x'.repeat(100)))
  }
  await all()
  expect(batches.length).toBeGreaterThan(1)
  for (const batch of batches) {
    expect(batch.length).toBeLessThanOrEqual(limits.journalBatch.entries)
    expect(JSON.stringify(batch).length).toBeLessThanOrEqual(limits.journalBatch.bytes)
  }
})

test('a flood of output costs a bounded text and a count of what is left out', async () => {
  const { reporter, all } = collect()
  const chunk = 'é'.repeat(10_000)
  for (let index = 0; index < 50; index++) reporter.engineOutput(3, chunk)
  const facts = await all()
  const bytes = facts.reduce(
    (sum, fact) =>
      sum + (fact.type === 'engine_output' ? Buffer.byteLength(fact.data.text) + fact.data.omitted_bytes : 0),
    0,
  )
  expect(bytes).toBe(50 * 20_000)
  expect(JSON.stringify(facts).length).toBeLessThan(50_000)
  expect(JSON.stringify(facts)).not.toContain('\ufffd')
})
