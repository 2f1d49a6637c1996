import type { IncomingHttpHeaders } from 'node:http'
import { Refusal } from './refusal.ts'

/** A request as it came: the target with its query, still encoded, and the headers by their names in lower case. */
export type Signed = { method: string; target: string; headers: IncomingHttpHeaders }

export type Credential = {
  accessKeyId: string
  day: string
  region: string
  service: string
  terminator: string
}

/** What a request shows of its signature, and what the signature is of. Nothing of it is proven. */
export type Presented = {
  kind: 'header' | 'address'
  credential: Credential
  date: Date
  /** In lower case. */
  signedHeaders: Set<string>
  /** 64 hex digits. */
  signature: string
  /** What the caller says it signed of the body; null where it does not say. */
  payload: string | null
  /** How long an address is good for; 0 for a signature in the headers. */
  expiresSecs: number
  path: string
  /** Without the signature's own parameters, but for an address’s `X-Amz-Content-Sha256`. */
  query: Record<string, string | string[]>
}

const algorithm = 'AWS4-HMAC-SHA256'
const own = ['Algorithm', 'Credential', 'Date', 'Expires', 'SignedHeaders', 'Signature'].map(
  (name) => `X-Amz-${name}`,
)

/** Reads what a request shows. Throws a Refusal for one that is not signed, or signed in any other way. */
export const presented = ({ target, headers }: Signed): Presented => {
  const at = target.indexOf('?')
  const path = at < 0 ? target : target.slice(0, at)
  const parameters = new URLSearchParams(at < 0 ? '' : target.slice(at + 1))
  const inHeader = headers.authorization !== undefined
  const inAddress = parameters.has('X-Amz-Algorithm')
  if (!inHeader && !inAddress)
    throw new Refusal('unsigned', 'the request has to be signed with the key of this home')
  if (inHeader && inAddress) throw new Refusal('malformed', 'the request is signed twice')
  const shown = inHeader ? fromHeader(headers.authorization ?? '') : fromAddress(parameters)
  const payload = headers['x-amz-content-sha256'] ?? parameters.get('X-Amz-Content-Sha256')
  return {
    kind: inHeader ? 'header' : 'address',
    credential: credentialOf(shown.credential),
    date: dateOf(inHeader ? headers['x-amz-date'] : parameters.get('X-Amz-Date')),
    signedHeaders: new Set(shown.signedHeaders.toLowerCase().split(';')),
    signature: shown.signature,
    payload: payload === null ? null : String(payload),
    expiresSecs: inHeader ? 0 : Number(parameters.get('X-Amz-Expires')),
    path,
    query: queryOf(parameters, inAddress),
  }
}

type Shown = { credential: string; signedHeaders: string; signature: string }

const fromHeader = (authorization: string): Shown => {
  const fields = new Map(
    authorization
      .slice(algorithm.length)
      .split(',')
      .map((field): [string, string] => {
        const [name = '', value = ''] = field.trim().split(/=(.*)/s)
        return [name, value]
      }),
  )
  return complete(
    authorization.startsWith(`${algorithm} `) && {
      credential: fields.get('Credential'),
      signedHeaders: fields.get('SignedHeaders'),
      signature: fields.get('Signature'),
    },
  )
}

const fromAddress = (parameters: URLSearchParams): Shown => {
  for (const name of own)
    if (parameters.getAll(name).length !== 1) throw new Refusal('malformed', `the address needs one ${name}`)
  return complete(
    parameters.get('X-Amz-Algorithm') === algorithm && {
      credential: parameters.get('X-Amz-Credential'),
      signedHeaders: parameters.get('X-Amz-SignedHeaders'),
      signature: parameters.get('X-Amz-Signature'),
    },
  )
}

const complete = (shown: false | { [Name in keyof Shown]: string | null | undefined }): Shown => {
  if (shown === false) throw new Refusal('malformed', `the request has to be signed with ${algorithm}`)
  const { credential, signedHeaders, signature } = shown
  if (!credential || !signedHeaders || !signature)
    throw new Refusal('malformed', 'a signature needs Credential, SignedHeaders and Signature')
  return { credential, signedHeaders, signature }
}

const credentialOf = (text: string): Credential => {
  const [accessKeyId, day, region, service, terminator, ...more] = text.split('/')
  if (!accessKeyId || !day || !region || !service || !terminator || more.length > 0)
    throw new Refusal('malformed', 'a credential is <key>/<day>/<region>/<service>/aws4_request')
  return { accessKeyId, day, region, service, terminator }
}

const dateOf = (text: string | string[] | null | undefined): Date => {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(String(text)) ?? []
  const [year, month, day, hour, minute, second] = parts
  const date = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  if (Number.isNaN(date.getTime()))
    throw new Refusal('malformed', 'X-Amz-Date has to be like 20260131T235959Z')
  return date
}

const queryOf = (parameters: URLSearchParams, isAddress: boolean): Presented['query'] =>
  Object.fromEntries(
    [...new Set(parameters.keys())]
      .filter((name) => !(isAddress && own.includes(name)))
      .map((name) => {
        const [first = '', ...more] = parameters.getAll(name)
        return [name, more.length === 0 ? first : [first, ...more]]
      }),
  )
