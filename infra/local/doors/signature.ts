import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { HttpRequest } from '@smithy/core/protocols'
import { Hash } from '@smithy/core/serde'
import { SignatureV4 } from '@smithy/signature-v4'
import type { KeyPair } from './key-pair.ts'
import { type Credential, type Presented, presented, type Signed } from './presented.ts'
import { Refusal } from './refusal.ts'

export type Service = 'dynamodb' | 's3' | 'states'

/** How far a caller's clock may be off, as on AWS. */
const skewMs = 15 * 60_000
const longestSecs = 7 * 24 * 3600

const sha256 = Hash.bind(null, 'sha256')

/**
 * Proves that a request is signed with the key pair (Signature Version 4, in its headers or as a presigned address), by
 * signing it again with the SDK's own signer. `body` are the bytes that the signature covers where no header says what it
 * covers. Returns the value of the payload that was signed: a SHA-256 in hex, or the name of a way to sign without one.
 * Throws a Refusal that says what is wrong.
 */
export const prove = async (
  request: Signed,
  { keys, service, now, body }: { keys: KeyPair; service: Service; now: number; body?: Buffer },
): Promise<{ payload: string | null }> => {
  const given = presented(request)
  requireCredential(given.credential, given.date, keys, service)
  requireTimely(given, now)
  requireSignedHeaders(request.headers, given.signedHeaders)
  const signer = new SignatureV4({
    credentials: keys,
    ...{ region: given.credential.region, service, sha256 },
    ...(service === 's3' ? { uriEscapePath: false } : {}),
    applyChecksum: false,
  })
  const expected =
    given.kind === 'header'
      ? await signedHeader(signer, request, given, body)
      : await signedAddress(signer, request, given)
  if (!isSame(expected, given.signature))
    throw new Refusal('signature', 'the signature is not that of this request under the key of this home')
  return { payload: given.payload }
}

const signedHeader = async (
  signer: SignatureV4,
  request: Signed,
  { path, query, date, signedHeaders }: Presented,
  body: Buffer | undefined,
): Promise<string> => {
  const { headers } = await signer.sign(
    new HttpRequest({
      ...{ method: request.method, path, query, body },
      headers: only(request.headers, signedHeaders),
    }),
    { signingDate: date, signableHeaders: signedHeaders },
  )
  return /Signature=([0-9a-f]{64})$/.exec(headers.authorization ?? '')?.[1] ?? ''
}

const signedAddress = async (
  signer: SignatureV4,
  request: Signed,
  { path, query, date, signedHeaders, payload, expiresSecs }: Presented,
): Promise<string> => {
  const { 'X-Amz-Content-Sha256': inQuery, ...rest } = query
  const again = await signer.presign(
    new HttpRequest({
      ...{ method: request.method, path, query: rest },
      headers: {
        ...only(request.headers, signedHeaders),
        // The signer moves this back to where it came from.
        ...(inQuery === undefined || payload === null ? {} : { 'X-Amz-Content-Sha256': payload }),
      },
      // Of no body that could be hashed: an address is signed before there is one.
      body: {},
    }),
    {
      ...{ signingDate: date, expiresIn: expiresSecs },
      ...{ signableHeaders: signedHeaders, unhoistableHeaders: signedHeaders },
    },
  )
  return String(again.query?.['X-Amz-Signature'] ?? '')
}

const requireCredential = (
  { accessKeyId, day, service: scope, terminator }: Credential,
  date: Date,
  keys: KeyPair,
  service: Service,
): void => {
  if (accessKeyId !== keys.accessKeyId)
    throw new Refusal(
      'key',
      'this access key is not known here; the one of this home is in its access-key.json',
    )
  const signedOn = date.toISOString().slice(0, 10).replaceAll('-', '')
  if (scope !== service || terminator !== 'aws4_request' || day !== signedOn)
    throw new Refusal(
      'signature',
      `the credential has to be scoped to ${signedOn}/<region>/${service}/aws4_request`,
    )
}

const requireTimely = ({ kind, date, expiresSecs }: Presented, now: number): void => {
  const signedAt = date.getTime()
  if (kind === 'header') {
    // In these words: by them the SDK knows that it may sign and send the call again.
    if (now - signedAt > skewMs)
      throw new Refusal('skew', 'Signature expired: the request was signed more than 15 minutes ago')
    if (signedAt - now > skewMs)
      throw new Refusal(
        'skew',
        'Signature not yet current: the request was signed more than 15 minutes from now',
      )
    return
  }
  if (!Number.isInteger(expiresSecs) || expiresSecs < 1 || expiresSecs > longestSecs)
    throw new Refusal('malformed', `X-Amz-Expires has to be from 1 to ${longestSecs} seconds`)
  if (signedAt - now > skewMs) throw new Refusal('expired', 'this address is not valid yet')
  if (now > signedAt + expiresSecs * 1000) throw new Refusal('expired', 'this address has expired')
}

/** The host is signed, and all that the services take orders from; nothing could be added to a signed request. */
const requireSignedHeaders = (headers: IncomingHttpHeaders, signed: ReadonlySet<string>): void => {
  const unsigned = Object.keys(headers).filter((name) => name.startsWith('x-amz-') && !signed.has(name))
  if (!signed.has('host')) unsigned.unshift('host')
  if (unsigned.length > 0)
    throw new Refusal('unsigned', `the headers ${unsigned.join(', ')} have to be signed`)
  const missing = [...signed].filter((name) => headers[name] === undefined)
  if (missing.length > 0)
    throw new Refusal('signature', `the signed headers ${missing.join(', ')} are missing`)
}

const only = (headers: IncomingHttpHeaders, names: ReadonlySet<string>): Record<string, string> =>
  Object.fromEntries([...names].map((name) => [name, String(headers[name])]))

const isSame = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
