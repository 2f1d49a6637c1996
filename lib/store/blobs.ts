import {
  GetObjectCommand,
  HeadObjectCommand,
  NoSuchKey,
  NotFound,
  PutObjectCommand,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { limits } from '../limits.ts'

/** Objects in the bucket. */
export type Blobs = ReturnType<typeof createBlobs>

export const createBlobs = (s3: S3Client, bucket: string) => ({
  /** Writes an object, replacing what is there; only for bytes that every repeat writes the same. */
  put: async (key: string, body: string, contentType = 'application/json'): Promise<void> => {
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body, ContentType: contentType }))
  },

  /** Writes an object that must not be there yet; false when it is. */
  create: async (key: string, body: string, contentType: string): Promise<boolean> => {
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

  /** The bytes of an object as a stream; null when there is none. */
  stream: async (key: string): Promise<ReadableStream | null> => {
    try {
      const answer = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }))
      return answer.Body?.transformToWebStream() ?? null
    } catch (error) {
      if (error instanceof NoSuchKey) return null
      throw error
    }
  },

  exists: async (key: string): Promise<boolean> => {
    try {
      await s3.send(new HeadObjectCommand({ Bucket: bucket, Key: key }))
      return true
    } catch (error) {
      if (error instanceof NotFound) return false
      throw error
    }
  },

  /** A URL under which anyone may read the object for a while. */
  downloadUrl: (key: string): Promise<string> =>
    getSignedUrl(s3, new GetObjectCommand({ Bucket: bucket, Key: key }), { expiresIn: limits.presignSecs }),

  /** A URL under which anyone may write the object for a while. */
  uploadUrl: (key: string): Promise<string> =>
    getSignedUrl(s3, new PutObjectCommand({ Bucket: bucket, Key: key }), { expiresIn: limits.presignSecs }),
})
