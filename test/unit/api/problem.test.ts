import { DynamoDBServiceException } from '@aws-sdk/client-dynamodb'
import { S3ServiceException } from '@aws-sdk/client-s3'
import { describe, expect, it } from 'vitest'
import { toGatehouseError } from '../../../functions/api/problem.ts'
import { GatehouseError } from '../../../lib/errors.ts'

const s3 = (name: string, httpStatusCode: number, message = name) =>
  new S3ServiceException({ name, message, $fault: 'client', $metadata: { httpStatusCode } })
const dynamo = (name: string, httpStatusCode: number, message = name) =>
  new DynamoDBServiceException({ name, message, $fault: 'client', $metadata: { httpStatusCode } })

describe('an error of a service is answered', () => {
  it.each([
    s3('RequestTimeTooSkewed', 403),
    s3('RequestExpired', 400),
    s3('SlowDown', 503),
    s3('InternalError', 500),
    dynamo(
      'InvalidSignatureException',
      400,
      'Signature expired: 20300101T000000Z is now earlier than 20300101T001600Z',
    ),
    dynamo(
      'InvalidSignatureException',
      400,
      'Signature not yet current: 20300101T003000Z is still later than now',
    ),
    dynamo('ProvisionedThroughputExceededException', 400),
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
    Object.assign(new Error('it took too long'), { name: 'TimeoutError' }),
  ])('as one that may be sent again: $name $message', (error) => {
    const told = toGatehouseError(error)
    expect([told.code, told.status, told.cause]).toEqual(['unavailable', 503, error])
  })

  it.each([
    s3('AccessDenied', 403),
    s3('SignatureDoesNotMatch', 403),
    dynamo('InvalidSignatureException', 400, 'The request signature we calculated does not match'),
    dynamo('ValidationException', 400),
    new TypeError('x is not a function'),
    'a text',
  ])('as a fault of ours where a repeat would do no good: $name', (error) => {
    expect(toGatehouseError(error).code).toBe('internal')
  })

  it('as what it was, where it is one of ours', () => {
    const error = new GatehouseError('not_found', 'no')
    expect(toGatehouseError(error)).toBe(error)
  })
})
