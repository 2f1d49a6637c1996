import crypto, { type CipherKey } from 'node:crypto'
import type { Listing, ListOptions, Store } from '@20minutes/s3rver'

/**
 * A view of `store` that lists by delimiter as S3 does: a key behind the delimiter counts once, as its common prefix.
 * (The store alone passes over whole folders before it has seen a key of theirs.)
 */
export const groupedListings = (store: Store): Store =>
  Object.assign(Object.create(store), {
    async listObjects(bucket: string, options: ListOptions): Promise<Listing> {
      const { delimiter, prefix = '', maxKeys = Number.POSITIVE_INFINITY } = options
      if (!delimiter) return store.listObjects(bucket, options)
      const all = await store.listObjects(bucket, {
        ...options,
        delimiter: undefined,
        maxKeys: Number.POSITIVE_INFINITY,
      })
      const prefixes = new Set<string>()
      const objects = all.objects.filter(({ key }) => {
        const at = key.indexOf(delimiter, prefix.length)
        if (at !== -1) prefixes.add(key.slice(0, at + delimiter.length))
        return at === -1
      })
      const kept = objects.slice(0, maxKeys)
      return {
        objects: kept,
        commonPrefixes: [...prefixes].sort(),
        isTruncated: kept.length < objects.length,
      }
    },
  })

const triple = (key: CipherKey): Buffer => {
  if (!Buffer.isBuffer(key)) throw new TypeError('a key of bytes is expected')
  return Buffer.concat([key, key, key])
}

let isReplaced = false

/**
 * The S3 server encrypts its continuation tokens with DES, which OpenSSL 3 no longer has; three times DES with one key
 * is the same cipher. Without this every listing that does not fit one page fails. Touches no other algorithm.
 */
export const allowContinuationTokens = (): void => {
  if (isReplaced) return
  isReplaced = true
  const { createCipheriv, createDecipheriv } = crypto
  const des = (algorithm: string) => algorithm === 'des'
  Object.assign(crypto, {
    createCipheriv: (...args: Parameters<typeof createCipheriv>) =>
      des(args[0]) ? createCipheriv('des-ede3-cbc', triple(args[1]), args[2]) : createCipheriv(...args),
    createDecipheriv: (...args: Parameters<typeof createDecipheriv>) =>
      des(args[0]) ? createDecipheriv('des-ede3-cbc', triple(args[1]), args[2]) : createDecipheriv(...args),
  })
}
