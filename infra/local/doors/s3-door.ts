import type { IncomingMessage, RequestListener } from 'node:http'
import { foreignCaller } from '../../../functions/loopback.ts'
import type { KeyPair } from './key-pair.ts'
import { Refusal, refuseXml } from './refusal.ts'
import { prove } from './signature.ts'

/** The one way to send a body in chunks whose signature covers what there is to cover: none of the chunks has one. */
const unsignedChunks = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'

/**
 * A door in front of S3: `inside` hears only of requests that are signed with the key pair, in their headers or as a
 * presigned address. What was signed of the body stands in their `x-amz-*` headers, also that of an address, for
 * `provenBody` to hold the body against.
 */
export const guardS3 =
  (keys: KeyPair, inside: RequestListener): RequestListener =>
  (request, response) => {
    admit(request, keys).then(
      () => inside(request, response),
      (error: unknown) => {
        if (error instanceof Refusal) refuseXml(response, error)
        else request.destroy()
      },
    )
  }

const admit = async (request: IncomingMessage, keys: KeyPair): Promise<void> => {
  const foreign = foreignCaller(request)
  if (foreign !== null) throw new Refusal('foreign', foreign)
  const { method = '', url = '', headers } = request
  const { payload } = await prove({ method, target: url, headers }, { keys, service: 's3', now: Date.now() })
  if (payload === null && headers.authorization !== undefined)
    throw new Refusal('malformed', 'S3 needs the header x-amz-content-sha256')
  if (payload?.startsWith('STREAMING-') && payload !== unsignedChunks)
    throw new Refusal(
      'unproven',
      `chunks with signatures are not checked here; send the body whole, or as ${unsignedChunks}`,
    )
  for (const [name, value] of new URL(url, 'http://local').searchParams)
    if (/^x-amz-(content-sha256|checksum-)/i.test(name)) headers[name.toLowerCase()] = value
}
