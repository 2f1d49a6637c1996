import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'

/** Why a request does not come in. */
export type Reason =
  | 'foreign'
  | 'unsigned'
  | 'key'
  | 'signature'
  | 'skew'
  | 'expired'
  | 'malformed'
  | 'body'
  | 'unproven'

/** Thrown at a door; nothing of the request was carried out. */
export class Refusal extends Error {
  readonly reason: Reason

  constructor(reason: Reason, message: string) {
    super(message)
    this.name = 'Refusal'
    this.reason = reason
  }
}

/** The errors as DynamoDB and Step Functions name them; all are answered with 400. */
const jsonNames: Record<Reason, string> = {
  foreign: 'AccessDeniedException',
  unsigned: 'MissingAuthenticationTokenException',
  key: 'UnrecognizedClientException',
  signature: 'InvalidSignatureException',
  skew: 'InvalidSignatureException',
  expired: 'InvalidSignatureException',
  malformed: 'IncompleteSignatureException',
  body: 'InvalidSignatureException',
  unproven: 'InvalidSignatureException',
}

/** The errors as S3 names them, with their status. */
const xmlNames: Record<Reason, [number, string]> = {
  foreign: [403, 'AccessDenied'],
  unsigned: [403, 'AccessDenied'],
  key: [403, 'InvalidAccessKeyId'],
  signature: [403, 'SignatureDoesNotMatch'],
  skew: [403, 'RequestTimeTooSkewed'],
  expired: [403, 'AccessDenied'],
  malformed: [400, 'AuthorizationHeaderMalformed'],
  body: [400, 'BadDigest'],
  unproven: [501, 'NotImplemented'],
}

/** Answers in the form of DynamoDB and Step Functions. */
export const refuseJson = (response: ServerResponse, { reason, message }: Refusal): void => {
  const text = JSON.stringify({ __type: `com.amazon.coral.service#${jsonNames[reason]}`, message })
  send(response, 400, 'application/x-amz-json-1.0', text)
}

/** Answers in the form of S3. */
export const refuseXml = (response: ServerResponse, { reason, message }: Refusal): void => {
  const [status, code] = xmlNames[reason]
  const plain = message.replace(/[<>&]/g, (character) => `&#${character.charCodeAt(0)};`)
  const text = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${plain}</Message></Error>`
  send(response, status, 'application/xml', text)
}

const send = (response: ServerResponse, status: number, type: string, text: string): void => {
  const id = randomUUID()
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    ...{ 'x-amzn-requestid': id, 'x-amz-request-id': id, date: new Date().toUTCString() },
    // The rest of a refused body is never read, so the connection is good for nothing more.
    connection: 'close',
  })
  response.end(text)
}
