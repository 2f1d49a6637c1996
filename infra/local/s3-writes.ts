import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Metadata, Store, StoredObject } from '@20minutes/s3rver'
import S3Error from '@20minutes/s3rver/lib/models/error.js'
import type { KeyLocks } from './key-locks.ts'
import { isDiskFull, noRoom } from './storage/room.ts'

/** What has to hold of the object that is there already: `If-None-Match: *`, or `If-Match` with an entity tag. */
export type WriteCondition = { absent: true } | { etag: string }

/**
 * A view of `store` whose writes are all or nothing: each is prepared in `incoming` (a folder on the same file
 * system) and becomes visible with one rename, so a process that is killed leaves the object as it was. Of racing
 * writers under `{ absent: true }` exactly one succeeds; the others are refused with `PreconditionFailed`.
 */
export function atomicWrites(
  store: Store,
  incoming: string,
  locks: KeyLocks,
  condition?: WriteCondition,
): Store {
  const view: Store = Object.assign(Object.create(store), {
    async putObject(object: StoredObject) {
      const draft = join(incoming, randomUUID())
      try {
        const written = await writeBody(draft, object.content)
        await locks.hold(`${object.bucket}/${object.key}`, async () => {
          await requireCondition(store, object, condition)
          await publish(store, draft, object, written.md5)
        })
        return written
      } catch (error) {
        if (isDiskFull(error)) throw new S3Error('ServiceUnavailable', noRoom)
        throw error
      } finally {
        await rm(draft, { force: true })
      }
    },

    async copyObject(
      fromBucket: string,
      fromKey: string,
      bucket: string,
      key: string,
      replacement: Metadata | null,
    ) {
      const source = await store.getObject(fromBucket, fromKey)
      if (!source) throw new S3Error('NoSuchKey', 'The specified key does not exist.', { Key: fromKey })
      await view.putObject({ bucket, key, content: source.content, metadata: replacement ?? source.metadata })
      return view.getMetadata(bucket, key)
    },

    // Empty folders stay: s3rver removes one with all that another write may be putting into it.
    async deleteObject(bucket: string, key: string) {
      await locks.hold(`${bucket}/${key}`, async () => {
        for (const part of ['object', 'object.md5', 'metadata.json'] as const)
          await rm(store.getResourcePath(bucket, key, part), { force: true })
      })
    },

    async getMetadata(bucket: string, key: string) {
      const body = store.getResourcePath(bucket, key, 'object')
      const md5 = store.getResourcePath(bucket, key, 'object.md5')
      const [bodyTime, md5Time] = await Promise.all([modified(body), modified(md5)])
      if (bodyTime !== undefined && (md5Time === undefined || md5Time < bodyTime)) {
        await replaceFile(incoming, md5, (await digest(body)).md5)
      }
      return store.getMetadata(bucket, key)
    },
  })

  // A new object's description is there before its body makes it visible. An object that is replaced gets its body
  // first: an entity tag older than its body is then known to be stale, whenever the process died.
  async function publish(target: Store, draft: string, object: StoredObject, md5: string): Promise<void> {
    const body = target.getResourcePath(object.bucket, object.key, 'object')
    await mkdir(dirname(body), { recursive: true })
    const replaces = await target.existsObject(object.bucket, object.key)
    if (replaces) await rename(draft, body)
    await replaceFile(incoming, target.getResourcePath(object.bucket, object.key, 'object.md5'), md5)
    await replaceFile(
      incoming,
      target.getResourcePath(object.bucket, object.key, 'metadata.json'),
      JSON.stringify(describable(object.metadata)),
    )
    if (!replaces) await rename(draft, body)
  }

  return view
}

async function requireCondition(
  store: Store,
  object: StoredObject,
  condition?: WriteCondition,
): Promise<void> {
  if (!condition) return
  const present = await store.existsObject(object.bucket, object.key)
  if ('absent' in condition) {
    if (present) throw failedPrecondition('If-None-Match')
    return
  }
  if (!present) throw new S3Error('NoSuchKey', 'The specified key does not exist.', { Key: object.key })
  const { etag } = await store.getMetadata(object.bucket, object.key)
  if (unquoted(etag) !== unquoted(condition.etag)) throw failedPrecondition('If-Match')
}

const failedPrecondition = (header: string) =>
  new S3Error('PreconditionFailed', 'At least one of the pre-conditions you specified did not hold', {
    Condition: header,
  })

const unquoted = (etag: string) => etag.replaceAll('"', '')

const intrinsic = new Set(['etag', 'last-modified', 'content-length'])

const describable = (metadata: Metadata) =>
  Object.fromEntries(Object.entries(metadata).filter(([name]) => !intrinsic.has(name)))

async function writeBody(path: string, content: Buffer | Readable): Promise<{ size: number; md5: string }> {
  const hash = createHash('md5')
  let size = 0
  await pipeline(
    Buffer.isBuffer(content) ? Readable.from([content]) : content,
    async function* measured(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk)
        size += chunk.length
        yield chunk
      }
    },
    createWriteStream(path),
  )
  return { size, md5: hash.digest('hex') }
}

async function digest(path: string): Promise<{ md5: string }> {
  const hash = createHash('md5')
  await pipeline(createReadStream(path), hash)
  return { md5: hash.digest('hex') }
}

async function replaceFile(incoming: string, path: string, text: string): Promise<void> {
  const draft = join(incoming, randomUUID())
  await writeFile(draft, text)
  await rename(draft, path)
}

const modified = (path: string) =>
  stat(path).then(
    (found) => found.mtimeMs,
    () => undefined,
  )
