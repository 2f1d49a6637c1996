import { createTarPacker } from 'modern-tar'
import { canonical } from '../journal/entry.ts'
import { gzipped } from './gzip.ts'
import { type Manifest, manifestPath } from './manifest.ts'

/** A file on its way into an archive; its content is asked for when its turn comes. */
export type PackedFile = { path: string; bytes: number; content: () => AsyncIterable<Uint8Array> }

const once = (bytes: Uint8Array) =>
  async function* content() {
    yield bytes
  }

/**
 * The bytes of an archive, a gzipped tar, made as they are read. The same content always gives the same bytes. The stream
 * breaks off with an error when a file is not as long as was said.
 */
export const packArchive = (
  manifest: Manifest,
  files: readonly PackedFile[],
): ReadableStream<Uint8Array<ArrayBuffer>> => {
  const { readable, controller } = createTarPacker()
  const add = async ({ path, bytes, content }: PackedFile): Promise<void> => {
    const into = controller.add({ name: path, size: bytes, type: 'file', mtime: new Date(0) }).getWriter()
    for await (const chunk of content()) await into.write(chunk)
    await into.close()
  }
  const run = async (): Promise<void> => {
    const text = Buffer.from(canonical(manifest))
    await add({ path: manifestPath, bytes: text.length, content: once(text) })
    for (const file of files) await add(file)
    controller.finalize()
  }
  run().catch((error: unknown) => controller.error(error))
  return ReadableStream.from(gzipped(readable))
}
