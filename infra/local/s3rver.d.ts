declare module '@20minutes/s3rver' {
  import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
  import type { Readable } from 'node:stream'

  export type Metadata = Record<string, string>

  export interface StoredObject {
    bucket: string
    key: string
    content: Buffer | Readable
    metadata: Metadata
  }

  export interface ListOptions {
    delimiter?: string | undefined
    startAfter?: string | undefined
    prefix?: string | undefined
    maxKeys?: number | undefined
  }

  export interface Listing {
    objects: { key: string }[]
    commonPrefixes: string[]
    isTruncated: boolean
  }

  /** Objects on disk: a body, `metadata.json` and the body's md5 side by side; the body's presence is the object's. */
  export interface Store {
    getResourcePath(bucket: string, key: string, resource: 'object' | 'metadata.json' | 'object.md5'): string
    listObjects(bucket: string, options: ListOptions): Promise<Listing>
    existsObject(bucket: string, key: string): Promise<boolean>
    /** Rejects with ENOENT when there is no such object. */
    getMetadata(bucket: string, key: string): Promise<Metadata & { etag: string }>
    getObject(bucket: string, key: string): Promise<StoredObject | null>
    putMetadata(bucket: string, key: string, metadata: Metadata, md5?: string): Promise<void>
    putObject(object: StoredObject): Promise<{ size: number; md5: string }>
    copyObject(
      sourceBucket: string,
      sourceKey: string,
      bucket: string,
      key: string,
      replacement: Metadata | null,
    ): Promise<Metadata & { etag: string }>
  }

  /** The part of a Koa context that a middleware of ours touches. */
  export interface Context {
    headers: IncomingHttpHeaders
    req: Readable & { method?: string | undefined }
    store: Store
  }

  class S3rver {
    constructor(options: {
      address: string
      port: number
      silent: boolean
      directory: string
      allowMismatchedSignatures: boolean
      vhostBuckets: boolean
      configureBuckets: { name: string }[]
    })
    silent: boolean
    store: Store
    middleware: ((context: Context, next: () => Promise<void>) => Promise<void>)[]
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    logger: { exceptions: { unhandle(): void }; close(): void }
  }

  export default S3rver
}

declare module '@20minutes/s3rver/lib/models/error.js' {
  /** An error that S3 answers in its own XML form, with the status that belongs to its code. */
  class S3Error extends Error {
    constructor(code: string, message: string, detail?: Record<string, string>)
  }
  export default S3Error
}

declare module '@20minutes/s3rver/lib/models/account.js' {
  interface Account {
    id: number
  }
  const accounts: { DUMMY_ACCOUNT: Account; registry: { get(accessKeyId: string): Account | undefined } }
  export default accounts
}
