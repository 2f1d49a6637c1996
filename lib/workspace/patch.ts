import { open, stat } from 'node:fs/promises'
import { headLength } from '../text/shorten.ts'
import { plainDiff } from './changes.ts'
import { git } from './git.ts'
import { onObjects, type Run } from './run-folder.ts'

/** Writes the whole patch from the base to a commit, binary files included, as `git apply` takes it. Returns its bytes. */
export const writePatch = async (run: Run, commit: string, file: string): Promise<number> => {
  await git(['diff-tree', ...plainDiff, '--patch', '--binary', run.base, commit], {
    ...onObjects(run),
    outputFile: file,
  })
  return (await stat(file)).size
}

export type PatchHead = { patch: string; truncated: boolean; full_bytes: number }

/** How much behind the cut is read, to see whether a character goes on there. */
const behind = 1024

/**
 * The first `limit` bytes of a patch as text, cut between characters; `full_bytes` is the size of the file. Bytes that are
 * not UTF-8 read as U+FFFD here and only here.
 */
export const readPatchHead = async (file: string, limit: number): Promise<PatchHead> => {
  const handle = await open(file)
  try {
    const { size } = await handle.stat()
    const buffer = Buffer.alloc(Math.min(size, limit + behind))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0)
    const truncated = bytesRead > limit
    const head = buffer.subarray(0, truncated ? headLength(buffer.subarray(0, bytesRead), limit) : bytesRead)
    return { patch: head.toString('utf8'), truncated, full_bytes: size }
  } finally {
    await handle.close()
  }
}
