import { mkdir, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import S3rver, { type Context } from '@20minutes/s3rver'
import accounts from '@20minutes/s3rver/lib/models/account.js'
import { provenBody } from './doors/body-proof.ts'
import type { KeyPair } from './doors/key-pair.ts'
import { guardS3 } from './doors/s3-door.ts'
import { KeyLocks } from './key-locks.ts'
import { listenOnLoopback, stopServer } from './loopback.ts'
import { decodeChunks } from './s3-chunks.ts'
import { allowContinuationTokens, groupedListings } from './s3-listing.ts'
import { atomicWrites, type WriteCondition } from './s3-writes.ts'

/**
 * Starts S3 on 127.0.0.1 with `bucket` in it; objects live under `directory`. Only requests and addresses that are
 * signed with `keys` are answered, and only bodies that are what was signed of them are stored; keys are addressed
 * path-style. Conditional puts answer as S3 does (412 `PreconditionFailed`), and a put is all or nothing even
 * when the process is killed. `port` 0 or absent takes a free one; rejects when it is taken.
 */
export async function startS3(options: {
  directory: string
  bucket: string
  keys: KeyPair
  port?: number
}): Promise<{ endpoint: string; close(): Promise<void> }> {
  const objects = join(options.directory, 'buckets')
  const incoming = join(options.directory, 'incoming')
  await rm(incoming, { recursive: true, force: true })
  await mkdir(objects, { recursive: true })
  await mkdir(incoming)

  allowContinuationTokens()
  // The door has looked at the signature; the server below fails to check one whose prefix holds `/`.
  accounts.registry = { get: () => accounts.DUMMY_ACCOUNT }
  const app = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory: objects,
    allowMismatchedSignatures: true,
    vhostBuckets: false,
    configureBuckets: [],
  })
  await mkdir(join(objects, options.bucket), { recursive: true })
  const locks = new KeyLocks()
  const store = groupedListings(app.store)
  // A caller that goes away ends its connection, and not the writing of what it sent.
  const inHand = new Set<Promise<void>>()
  app.middleware.unshift((context, next) => {
    context.store = atomicWrites(store, incoming, locks, conditionOf(context))
    plainBody(context)
    const answer = next()
    inHand.add(answer)
    return answer.finally(() => inHand.delete(answer))
  })

  const server = createServer(guardS3(options.keys, app.callback()))
  const endpoint = await listenOnLoopback(server, options.port)
  return {
    endpoint,
    async close() {
      await stopServer(server)
      await Promise.allSettled(inHand)
      app.logger.exceptions.unhandle()
      app.logger.close()
    },
  }
}

function conditionOf({ headers, req }: Context): WriteCondition | undefined {
  if (req.method !== 'PUT' && req.method !== 'POST') return undefined
  if (headers['if-none-match'] === '*') return { absent: true }
  return headers['if-match'] === undefined ? undefined : { etag: headers['if-match'] }
}

// The server below knows one of the chunked encodings and would store the framing of the others as content.
function plainBody(context: Context): void {
  const { headers, req } = context
  const { method } = req
  if (method !== 'PUT' && method !== 'POST') return
  if (!/^STREAMING-.*TRAILER$/.test(String(headers['x-amz-content-sha256']))) {
    context.req = Object.assign(provenBody(headers, req), { method })
    return
  }
  headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD'
  const encoding = String(headers['content-encoding'] ?? '').replace(/\s*aws-chunked\s*,?\s*/, '')
  if (encoding) headers['content-encoding'] = encoding
  else delete headers['content-encoding']
  context.req = Object.assign(provenBody(headers, decodeChunks(req)), { method })
}
