import { hash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { packTar, type TarHeader } from 'modern-tar'
import { canonical, type Entry, emptyHead, fromLine, sha256, toLine } from '../../lib/journal/entry.ts'
import type { SessionItem } from '../../lib/session/item.ts'

type Json = Record<string, unknown>
type File = { path: string; body: Buffer; header?: Partial<TarHeader> }
/** An archive as a test puts it together: nothing here is checked. */
export type Made = { manifest: Json; files: File[] }

/** An archive of a session with these lines, as an export would make it; other files go by their paths. */
export const madeOf = (
  item: SessionItem,
  lines: readonly string[],
  others: Record<string, string> = {},
): Made =>
  described({
    manifest: {
      ...{ format: 'gatehouse-session', format_version: 1, session_id: item.id, team: item.team },
      ...{ entries: lines.length, head: item.journal_head },
    },
    files: [
      { path: 'document.json', body: Buffer.from(canonical(item.document)) },
      ...Object.entries(others).map(([path, text]) => ({ path, body: Buffer.from(text) })),
      { path: 'journal.jsonl', body: Buffer.from(lines.map((line) => `${line}\n`).join('')) },
    ],
  })

/** The same with a manifest that names the files as they are. */
export const described = ({ manifest, files }: Made): Made => ({
  manifest: {
    ...manifest,
    files: files.map(({ path, body }) => ({ path, bytes: body.length, sha256: hash('sha256', body) })),
  },
  files,
})

/** The tar's own bytes, as they are in front of the compression. */
export const tarred = async ({ manifest, files }: Made, text = canonical(manifest)): Promise<Buffer> =>
  Buffer.from(
    await packTar(
      [{ path: 'manifest.json', body: Buffer.from(text) }, ...files].map(({ path, body, ...more }: File) => ({
        header: { name: path, size: body.length, type: 'file' as const, mtime: new Date(0), ...more.header },
        ...(more.header ? {} : { body }),
      })),
    ),
  )

export const packed = async (made: Made, text?: string): Promise<Buffer> =>
  gzipSync(await tarred(made, text), { level: 1 })

/** An archive with one of its files replaced, and described as it is then. */
export const replaced = (made: Made, path: string, change: (text: string) => string): Made =>
  described({
    ...made,
    files: made.files.map((file) =>
      file.path === path ? { ...file, body: Buffer.from(change(file.body.toString())) } : file,
    ),
  })

/** Entries that were tampered with, hashed and chained anew as a skilled forger would. */
export const rechained = (entries: readonly Entry[]): string[] => {
  let last = emptyHead.hash
  return entries.map((entry, sequence) => {
    const { hash: _, ...rest } = { ...entry, sequence, previous_hash: last }
    last = sha256(canonical(rest))
    return toLine({ ...rest, hash: last })
  })
}

/** An archive whose journal was changed by a skilled forger; its document is left as it was. */
export const rewritten = (made: Made, change: (entries: Entry[]) => Entry[]): Made => {
  let head = emptyHead
  const changed = replaced(made, 'journal.jsonl', (text) => {
    const lines = rechained(change(text.trimEnd().split('\n').map(fromLine)))
    head = { sequence: lines.length - 1, hash: fromLine(lines.at(-1) ?? '').hash }
    return lines.map((line) => `${line}\n`).join('')
  })
  return { ...changed, manifest: { ...changed.manifest, entries: head.sequence + 1, head } }
}
