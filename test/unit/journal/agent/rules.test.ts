import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { readJson, recordFiles } from './fixtures.ts'

const rules = z
  .array(z.strictObject({ id: z.string(), rule: z.string().min(1), held_by: z.array(z.string()).min(1) }))
  .parse(readJson('rules.json'))

const rulesOf = (file: string): Set<string> =>
  new Set(
    recordFiles
      .filter((one) => `records/${one.file}` === file)
      .flatMap(({ cases }) => cases.flatMap((one) => one.rules)),
  )

it('every rule stands in the table once', () => {
  const ids = rules.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  const used = recordFiles.flatMap(({ cases }) => cases.flatMap((one) => one.rules))
  expect([...new Set(used)].filter((id) => !ids.includes(id))).toEqual([])
})

it.each(rules)('$id is held by what it names', ({ id, held_by }) => {
  for (const holder of held_by) {
    const [path = '', name] = holder.split('#')
    if (name === undefined) expect(rulesOf(path)).toContain(id)
    else
      expect(readFileSync(new URL(`../../../conformance/${path}`, import.meta.url), 'utf8')).toContain(
        `it('${name}'`,
      )
  }
})

it.each(rules)('$id names every file that has an example of it', ({ id, held_by }) => {
  const files = recordFiles.map(({ file }) => `records/${file}`).filter((file) => rulesOf(file).has(id))
  expect(held_by).toEqual(expect.arrayContaining(files))
})
