import { z } from 'zod'
import { idSchema } from '../ids.ts'
import { headSchema } from '../journal/entry.ts'
import { limits } from '../limits.ts'
import { ArchiveError } from './error.ts'

/** The files that every archive has beside artifacts and bundles. */
export const manifestPath = 'manifest.json'
export const documentPath = 'document.json'
export const journalPath = 'journal.jsonl'

/** A file of an archive: a name without folders of its own, so that no path leads anywhere else. */
const pathSchema = z
  .string()
  .regex(/^(?:document\.json|journal\.jsonl|(?:artifacts|bundles)\/[A-Za-z0-9][A-Za-z0-9._-]{0,199})$/)

const fileSchema = z.strictObject({
  path: pathSchema,
  bytes: z.number().int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
export type ManifestFile = z.infer<typeof fileSchema>

const folders = [documentPath, 'artifacts', 'bundles', journalPath]
const rank = (path: string): number => folders.indexOf(path.split('/', 1)[0] ?? '')

/** Where one file stands before another: the journal is the last, since its entries may refer to artifacts. */
const isBefore = (a: string, b: string): boolean =>
  rank(a) < rank(b) || (rank(a) === rank(b) && Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0)

const isInOrder = (files: readonly ManifestFile[]): boolean =>
  files.every(({ path }, at) => at === 0 || isBefore(files[at - 1]?.path ?? '', path))

/** The order of an archive's files behind its manifest. */
export const inOrder = <File extends ManifestFile>(files: readonly File[]): File[] =>
  files.toSorted((a, b) => (isBefore(a.path, b.path) ? -1 : 1))

/**
 * What an archive says of itself (spec/session-record.md B.7): whose session it is, where its journal ends, and every
 * other file in its order with its size and SHA-256 in hex.
 */
export const manifestSchema = z.strictObject({
  format: z.literal('gatehouse-session'),
  format_version: z.literal(1),
  session_id: idSchema('ses'),
  team: z.string(),
  /** How many entries the journal has, and the last of them. */
  entries: z.number().int().min(1).max(limits.archive.entries),
  head: headSchema,
  files: z
    .array(fileSchema)
    .max(limits.archive.files)
    .refine(isInOrder, 'each file stands once, in order')
    .refine(
      (files) => files[0]?.path === documentPath && files.at(-1)?.path === journalPath,
      `the first is ${documentPath} and the last ${journalPath}`,
    ),
})
export type Manifest = z.infer<typeof manifestSchema>

const versionSchema = z.looseObject({ format: z.literal('gatehouse-session'), format_version: z.number() })

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new ArchiveError('its manifest is not JSON')
  }
}

/** Reads a manifest. Throws ArchiveError for one of another format or version, and for one that is not as it should be. */
export const readManifest = (text: string): Manifest => {
  const value = parsed(text)
  const version = versionSchema.safeParse(value)
  if (!version.success) throw new ArchiveError('it is not the archive of a session')
  const { format_version } = version.data
  if (format_version !== 1) throw new ArchiveError(`format version ${format_version} is not supported`)
  const manifest = manifestSchema.safeParse(value)
  if (manifest.success) return manifest.data
  const [issue] = manifest.error.issues
  throw new ArchiveError(`its manifest is not valid, ${issue?.path.join('.')}: ${issue?.message}`)
}
