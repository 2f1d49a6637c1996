import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lifecycleMarks, stateDiagram, stepTable, withLifecycle } from '../../../lib/machine/diagram.ts'
import { lifecycle } from '../../../lib/session/lifecycle.ts'
import { stateSchema, stepSchema } from '../../../lib/session/states.ts'

const readme = readFileSync(join(import.meta.dirname, '../../../lib/session/README.md'), 'utf8')

describe('the lifecycle diagram', () => {
  it('is the one that lib/session/README.md shows', () => {
    expect(withLifecycle(readme) === readme, 'lib/session/README.md is stale: run npm run diagram').toBe(true)
  })

  it('shows every state, and every trigger that changes one with who may pull it', () => {
    const diagram = stateDiagram()
    for (const state of stateSchema.options) expect(diagram).toMatch(new RegExp(`\\b${state}\\b`))
    for (const { trigger, to, by } of lifecycle.filter(({ to }) => to !== 'same'))
      expect(diagram).toContain(`--> ${to}: ${trigger} (${by.join(' or ')})`)
  })

  it('leaves out the triggers that change no state', () => {
    for (const { trigger } of lifecycle.filter(({ to }) => to === 'same'))
      expect(stateDiagram()).not.toContain(`: ${trigger} (`)
  })

  it('lists every step once, in order', () => {
    const names = stepTable()
      .split('\n')
      .slice(2)
      .map((row) => row.split(' | ')[0]?.slice(2))
    expect(names).toEqual(stepSchema.options)
  })
})

describe('writing it into a page', () => {
  const page = `before\n${lifecycleMarks.begin}\nold\n${lifecycleMarks.end}\nafter\n`

  it('changes only what stands between the marks, and nothing when done again', () => {
    const written = withLifecycle(page)
    expect(written).toMatch(/^before\n/)
    expect(written).toMatch(/\nafter\n$/)
    expect(written).not.toContain('old')
    expect(withLifecycle(written)).toBe(written)
  })

  it.each([
    ['no marks', 'a page'],
    ['one mark', `a page ${lifecycleMarks.begin}`],
    ['marks in the wrong order', `${lifecycleMarks.end} ${lifecycleMarks.begin}`],
  ])('refuses a page with %s', (_what, bad) => {
    expect(() => withLifecycle(bad)).toThrow(/has to hold/)
  })
})
