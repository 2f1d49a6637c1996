import { describe, expect, it } from 'vitest'
import { tools } from '../../../../lib/contract/inputs/tools.ts'
import { wordsOf } from '../../../../lib/contract/inputs/words.ts'
import { contractOverlap } from '../../../../lib/contract/overlap.ts'
import { aContract } from '../contracts.ts'
import { compiledRows, javascriptRows, otherRows, pythonRows, quietRows } from './rows.ts'

const rows = [...javascriptRows, ...pythonRows, ...compiledRows, ...otherRows]

const nothingAt = async () => null

/** What a check with this command says of changed files, in a repository of which nothing can be read. */
const told = async (command: string, changed: readonly string[]) =>
  contractOverlap(aContract([{ command }]), changed, nothingAt)

describe('a tool’s own instructions', () => {
  it.each(rows.map(([command, ...files]) => ({ command, files })))('$command', async ({ command, files }) => {
    const { overlap, instructions } = await told(command, [...files, 'unrelated/notes.txt'])
    expect(instructions.toSorted()).toEqual(files.toSorted())
    expect(overlap).toEqual([{ check: 'unit', paths: files }])
  })

  it('may lie in a folder for which a link can stand', async () => {
    expect((await told('cargo test', ['.cargo'])).instructions).toEqual(['.cargo'])
    expect((await told('npm test', ['tests'])).overlap).toEqual([{ check: 'unit', paths: ['tests'] }])
  })

  it('have a row here for each tool of the table', () => {
    const called = new Set(rows.flatMap(([command]) => [...wordsOf(command).tools]))
    expect(tools.filter((tool) => !called.has(tool)).map(({ names }) => names[0])).toEqual([])
  })

  it.each(quietRows.map(([command, ...files]) => ({ command, files })))(
    'are not everything: $command',
    async ({ command, files }) => {
      expect(await told(command, files)).toEqual({ overlap: [], instructions: [] })
    },
  )
})
