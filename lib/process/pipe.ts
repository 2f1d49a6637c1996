import { execFile } from 'node:child_process'
import { closeSync, constants, fstatSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import type { PipeIdentity } from './live.ts'

const run = promisify(execFile)

/** A pipe of which a child gets the writing end for both its standard output and its standard error. */
export type OutputPipe = { reader: Socket; writer: number; identity: PipeIdentity; closeWriter: () => void }

/**
 * Makes a real pipe, by way of a named one at `path` that is gone again when this resolves. The pipes that
 * Node makes are socket pairs, one for each stream: on those a child's `> /dev/stderr` fails and the order
 * between the two is lost. Rejects when the named pipe cannot be made.
 */
export const openOutputPipe = async (path: string): Promise<OutputPipe> => {
  rmSync(path, { force: true })
  await run('mkfifo', ['-m', '600', path])
  try {
    // The reader first and without blocking: opening either end otherwise waits for the other.
    const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const writer = openSync(path, constants.O_WRONLY)
      const reader = new Socket({ fd: readEnd, readable: true, writable: false })
      return { reader, writer, identity: fstatSync(writer), closeWriter: () => closeSync(writer) }
    } catch (error) {
      closeSync(readEnd)
      throw error
    }
  } finally {
    rmSync(path, { force: true })
  }
}
