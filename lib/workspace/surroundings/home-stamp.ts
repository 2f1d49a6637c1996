import { createHash } from 'node:crypto'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error)

/**
 * A digest of what a folder holds by names, kinds, sizes and times, contents unread: whoever writes in it changes the
 * digest, since the time of a file's last change can't be set by those who may write it. What can't be read, or is gone,
 * is part of it as that.
 */
export const stampOf = async (folder: string): Promise<string> => {
  const lines: string[] = []
  const look = async (path: string): Promise<void> => {
    const { dev, ino, mode, size, ctimeNs } = await lstat(path, { bigint: true })
    lines.push(JSON.stringify([path, ...[dev, ino, mode, size, ctimeNs].map(String)]))
  }
  const walk = async (path: string): Promise<void> => {
    await look(path)
    for (const entry of await readdir(path, { withFileTypes: true })) {
      const inner = join(path, entry.name)
      await (entry.isDirectory() ? walk(inner) : look(inner)).catch((error: unknown) =>
        lines.push(JSON.stringify([inner, codeOf(error)])),
      )
    }
  }
  await walk(folder).catch((error: unknown) => lines.push(codeOf(error)))
  return createHash('sha256').update(lines.sort().join('\n')).digest('hex')
}
