import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import type { Bounds } from '../../../lib/process/bounds/excess.ts'
import { treeSize } from '../../../lib/process/bounds/tree-size.ts'
import { liveProcesses } from '../../../lib/process/live.ts'
import { runProcess } from '../../../lib/process/run.ts'
import { temporaryFolder } from '../../repositories.ts'

const megabyte = 1024 * 1024
const wide: Bounds = { tree: limits.run.tree, output: limits.run.output, free: 0 }

const run = async (command: string, bounds: Partial<Bounds>) => {
  const folder = temporaryFolder()
  const cwd = join(folder, 'tree')
  mkdirSync(cwd)
  const marker = folder
  const outputFile = join(folder, 'output.log')
  const env = { PATH: process.env.PATH ?? '' }
  const spec = { command, cwd, env, timeoutMs: 20_000, outputFile, marker, bounds: { ...wide, ...bounds } }
  const result = await runProcess(spec)
  expect(await liveProcesses({ group: null, mark: marker })).toEqual([])
  return { ...result, tree: cwd }
}

describe('what a run may take', () => {
  it('ends it with all that it started when its tree grows too large', async () => {
    const ended = await run(
      'mkdir -p a/b; (sleep 60 &); head -c 5000000 /dev/zero > a/b/log; exec sleep 60',
      { tree: 4 * megabyte },
    )
    expect(ended).toMatchObject({ ended: 'tree_too_large', error: expect.stringContaining('worktree took') })
    expect(ended.durationMs).toBeLessThan(15_000)
  })

  it('ends it when it prints too much', async () => {
    const ended = await run('exec yes', { output: megabyte })
    expect(ended).toMatchObject({ ended: 'output_too_large', error: expect.stringContaining('it printed') })
    expect(ended.bytes).toBeGreaterThan(megabyte)
  })

  it('ends it when the disk has too little room, and says so of one that failed by that', async () => {
    const free = Number.MAX_SAFE_INTEGER
    expect(await run('exec sleep 60', { free })).toMatchObject({
      ended: 'out_of_room',
      error: expect.stringContaining('the disk'),
    })
    expect(await run('exit 1', { free })).toMatchObject({ ended: 'out_of_room' })
  })

  it('leaves alone what stays within, and counts what the disk holds and not what files say', async () => {
    const { tree, ...ended } = await run('truncate -s 100M sparse; ln -s / root; echo fine', {
      tree: megabyte,
      output: megabyte,
    })
    expect(ended).toMatchObject({ ended: 'exited', exitCode: 0, error: null, head: 'fine\n' })
    expect(await treeSize(tree, 100 * megabyte)).toBeLessThan(megabyte)
  })
})
