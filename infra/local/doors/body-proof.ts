import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import S3Error from '@20minutes/s3rver/lib/models/error.js'
import { Crc32, Crc32c, Crc64Nvme } from '@aws-sdk/checksums/crc'

type Digest = { update(bytes: Uint8Array): void; digest(): Promise<Uint8Array> | Uint8Array }
type Claim = { header: string; digest: Digest; encoding: 'hex' | 'base64'; expected: string }

const hashed = (algorithm: string): Digest => {
  const hash = createHash(algorithm)
  return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest() }
}

const checksums: Record<string, () => Digest> = {
  'content-md5': () => hashed('md5'),
  'x-amz-checksum-sha1': () => hashed('sha1'),
  'x-amz-checksum-sha256': () => hashed('sha256'),
  'x-amz-checksum-crc32': () => new Crc32(),
  'x-amz-checksum-crc32c': () => new Crc32c(),
  'x-amz-checksum-crc64nvme': () => new Crc64Nvme(),
}

const claimsOf = (headers: IncomingHttpHeaders): Claim[] => {
  const payload = String(headers['x-amz-content-sha256'] ?? '')
  return [
    ...(/^[0-9a-f]{64}$/.test(payload)
      ? [
          {
            header: 'x-amz-content-sha256',
            digest: hashed('sha256'),
            encoding: 'hex' as const,
            expected: payload,
          },
        ]
      : []),
    ...Object.entries(checksums).flatMap(([header, make]) => {
      const expected = headers[header]
      return expected === undefined
        ? []
        : [{ header, digest: make(), encoding: 'base64' as const, expected: String(expected) }]
    }),
  ]
}

/**
 * The body of a request to S3, which fails at its end where it is not what the request's headers say of it: its SHA-256,
 * its MD5, its checksum. Whoever stores it has then stored nothing.
 */
export const provenBody = (headers: IncomingHttpHeaders, body: AsyncIterable<Buffer>): Readable =>
  Readable.from(proven(claimsOf(headers), body))

async function* proven(claims: Claim[], body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    for (const { digest } of claims) digest.update(chunk)
    yield chunk
  }
  for (const { header, digest, encoding, expected } of claims) {
    const found = Buffer.from(await digest.digest()).toString(encoding)
    if (found === expected) continue
    throw new S3Error('BadDigest', `The ${header} you specified did not match what we received.`)
  }
}
