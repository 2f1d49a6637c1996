import { createHash } from 'node:crypto'
import {
  CopyObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  NoSuchKey,
  NotFound,
  PutObjectCommand,
  paginateListObjectsV2,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { GatehouseError } from '../errors.ts'
import { limits } from '../limits.ts'

/** Objects in the bucket. */
export type Blobs = ReturnType<typeof createBlobs>

/** The most keys that S3 lists in one page, and removes by one call. */
const keysPerCall = 1000
/** How often all objects of a folder are removed before one that is still listed counts as a fault. */
const removalPasses = 5

/** Keys of the objects below a prefix, page by page. */
async function* listed(s3: S3Client, bucket: string, prefix: string): AsyncGenerator<string[]> {
  const input = { Bucket: bucket, Prefix: prefix, MaxKeys: keysPerCall }
  for await (const { Contents = [] } of paginateListObjectsV2({ client: s3 }, input))
    yield Contents.flatMap(({ Key }) => (Key === undefined ? [] : [Key]))
}

const remove = async (s3: S3Client, bucket: string, keys: string[]): Promise<void> => {
  const objects = keys.map((Key) => ({ Key }))
  const { Errors = [] } = await s3.send(
    new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects: objects, Quiet: true } }),
  )
  const [refused] = Errors
  if (refused)
    throw new GatehouseError(
      'unavailable',
      `${refused.Key} was not removed: ${refused.Code} ${refused.Message}`,
    )
}

const sizeOf = async (s3: S3Client, bucket: string, key: string): Promise<number | null> => {
  try {
    const { ContentLength } = await s3.send(new HeadObjectCommand({ Bucket: bucket, Key: key }))
    return ContentLength ?? 0
  } catch (error) {
    if (error instanceof NotFound) return null
    throw error
  }
}

const streamOf = async (s3: S3Client, bucket: string, key: string): Promise<ReadableStream | null> => {
  try {
    const answer = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }))
    return answer.Body?.transformToWebStream() ?? null
  } catch (error) {
    if (error instanceof NoSuchKey) return null
    throw error
  }
}

export const createBlobs = (s3: S3Client, bucket: string) => ({
  /** Writes an object, replacing what is there; only for bytes that every repeat writes the same. */
  put: async (key: string, body: string | Buffer, contentType = 'application/json'): Promise<void> => {
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body, ContentType: contentType }))
  },

  /** Writes an object that must not be there yet; false when it is. */
  create: async (key: string, body: string | Uint8Array, contentType: string): Promise<boolean> => {
    try {
      await s3.send(
        new PutObjectCommand({
          Bucket: bucket,
          Key: key,
          Body: body,
          ContentType: contentType,
          IfNoneMatch: '*',
        }),
      )
      return true
    } catch (error) {
      // 409 is S3's answer while another conditional write to the key is under way: somebody else is creating it.
      if (
        error instanceof S3ServiceException &&
        (error.name === 'PreconditionFailed' || error.name === 'ConditionalRequestConflict')
      )
        return false
      throw error
    }
  },

  /** Copies an object to another key of the bucket, replacing what is there; false when there is nothing to copy. */
  copy: async (from: string, to: string): Promise<boolean> => {
    try {
      await s3.send(
        new CopyObjectCommand({
          Bucket: bucket,
          Key: to,
          CopySource: `${bucket}/${from.split('/').map(encodeURIComponent).join('/')}`,
        }),
      )
      return true
    } catch (error) {
      if (error instanceof S3ServiceException && (error.name === 'NoSuchKey' || error.name === 'NotFound'))
        return false
      throw error
    }
  },

  /** The text of an object; null when there is none. */
  get: async (key: string): Promise<string | null> => {
    try {
      const answer = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }))
      return (await answer.Body?.transformToString('utf-8')) ?? ''
    } catch (error) {
      if (error instanceof NoSuchKey) return null
      throw error
    }
  },

  /** The bytes of an object, or some of them; null when there is none, or when it is not of `of` bytes or does not reach so far. */
  bytes: async (key: string, part?: { from: number; length: number; of: number }): Promise<Buffer | null> => {
    const Range = part && `bytes=${part.from}-${part.from + part.length - 1}`
    try {
      const answer = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: key, Range }))
      const bytes = Buffer.from((await answer.Body?.transformToByteArray()) ?? [])
      const isPart = part && bytes.length === part.length && answer.ContentRange?.endsWith(`/${part.of}`)
      return part && !isPart ? null : bytes
    } catch (error) {
      if (error instanceof NoSuchKey) return null
      if (error instanceof S3ServiceException && error.name === 'InvalidRange') return null
      throw error
    }
  },

  /** The bytes of an object as a stream; null when there is none. */
  stream: (key: string): Promise<ReadableStream | null> => streamOf(s3, bucket, key),

  /** The SHA-256 of an object's bytes in hex, none of which are held; null when there is none. */
  sha256: async (key: string): Promise<string | null> => {
    const stream = await streamOf(s3, bucket, key)
    if (stream === null) return null
    const seen = createHash('sha256')
    for await (const chunk of stream) seen.update(chunk)
    return seen.digest('hex')
  },

  exists: async (key: string): Promise<boolean> => (await sizeOf(s3, bucket, key)) !== null,

  /** How many bytes an object has; null when there is none. */
  size: (key: string): Promise<number | null> => sizeOf(s3, bucket, key),

  /** Keys of the objects below a prefix, one listing at a time. */
  async *list(prefix: string): AsyncGenerator<string> {
    for await (const keys of listed(s3, bucket, prefix)) yield* keys
  },

  /** Keys below a prefix that sort behind `after`, which need not be there: the first ones, as one listing has them. */
  listAfter: async (prefix: string, after: string): Promise<string[]> => {
    const { Contents = [] } = await s3.send(
      new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, StartAfter: after, MaxKeys: keysPerCall }),
    )
    return Contents.flatMap(({ Key }) => (Key === undefined ? [] : [Key]))
  },

  /** Removes objects, at most a thousand; harmless for one that is not there. Throws `unavailable` when one stays. */
  remove: (keys: string[]): Promise<void> => remove(s3, bucket, keys),

  /**
   * Removes every object below a prefix, which names a folder (`…/`); harmless to repeat. When it returns, a listing
   * was empty. Throws `unavailable` when an object stays.
   */
  removeAll: async (prefix: string): Promise<void> => {
    if (!/[^/]\/$/.test(prefix)) throw new GatehouseError('internal', `"${prefix}" names no folder`)
    for (let pass = 0; pass < removalPasses; pass++) {
      let found = 0
      for await (const keys of listed(s3, bucket, prefix)) {
        if (keys.length > 0) await remove(s3, bucket, keys)
        found += keys.length
      }
      if (found === 0) return
    }
    throw new GatehouseError('unavailable', `objects below ${prefix} come back or stay`)
  },

  /** A URL under which anyone may read the object for a while. */
  downloadUrl: (key: string): Promise<string> =>
    getSignedUrl(s3, new GetObjectCommand({ Bucket: bucket, Key: key }), { expiresIn: limits.presignSecs }),

  /** A URL under which anyone may write the object for a while. */
  uploadUrl: (key: string): Promise<string> =>
    getSignedUrl(s3, new PutObjectCommand({ Bucket: bucket, Key: key }), { expiresIn: limits.presignSecs }),
})
