import { rmSync, writeFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { startOf } from '../process/stat.ts'

const noteSchema = z.object({ pid: z.number().int().positive(), started: z.number().nullable() })

/** Says that a child is about to start, so that whoever comes after a kill in that moment tidies up too. */
export const expectChild = (file: string): void => writeFileSync(file, '{}')

/** Notes a child that outlives us if we are killed. */
export const noteChild = (file: string, pid: number): void =>
  writeFileSync(file, JSON.stringify({ pid, started: startOf(pid) }))

/** The child ended by itself. */
export const forgetChild = (file: string): void => rmSync(file, { force: true })

/** Ends the noted child of a holder that was killed. True when there was a note, so something may be half-done. */
export const endOrphan = async (file: string): Promise<boolean> => {
  const text = await readFile(file, 'utf8').catch(() => null)
  if (text === null) return false
  let note: z.infer<typeof noteSchema> | undefined
  try {
    note = noteSchema.safeParse(JSON.parse(text)).data
  } catch {
    return true
  }
  if (note === undefined) return true
  for (let tries = 0; tries < 100 && note.started !== null && startOf(note.pid) === note.started; tries++) {
    try {
      process.kill(-note.pid, 'SIGKILL')
    } catch {
      break
    }
    await sleep(20)
  }
  return true
}

const sweepFolder = async (folder: string, leftover: RegExp): Promise<void> => {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => [])
  await Promise.all(
    entries
      .filter((entry) => entry.isFile() && leftover.test(entry.name))
      .map((entry) => rm(join(entry.parentPath, entry.name), { force: true })),
  )
}

/** Removes what a killed git process leaves in a bare repository: lock files and unfinished objects. */
export const sweepLeftovers = async (directory: string): Promise<void> => {
  const top = await readdir(directory)
  await Promise.all([
    ...top.filter((name) => name.endsWith('.lock')).map((name) => rm(join(directory, name), { force: true })),
    sweepFolder(join(directory, 'refs'), /\.lock$/),
    sweepFolder(join(directory, 'objects'), /^tmp_|\.lock$/),
  ])
}
