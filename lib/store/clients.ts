import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { S3Client } from '@aws-sdk/client-s3'
import { SFNClient } from '@aws-sdk/client-sfn'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { limits } from '../limits.ts'

/** Where the three services are. On AWS the endpoints are absent and the SDK finds them by region. */
export const serviceSettingsSchema = z.object({
  region: z.string(),
  table: z.string(),
  bucket: z.string(),
  state_machine_arn: z.string(),
  dynamodb: z.url().optional(),
  s3: z.url().optional(),
  states: z.url().optional(),
})
export type ServiceSettings = z.infer<typeof serviceSettingsSchema>

/** The settings as the environment of a function gives them. Throws when one is missing. */
export const serviceSettings = (env: NodeJS.ProcessEnv): ServiceSettings =>
  serviceSettingsSchema.parse({
    region: env.AWS_REGION,
    table: env.TABLE_NAME,
    bucket: env.BUCKET_NAME,
    state_machine_arn: env.STATE_MACHINE_ARN,
    dynamodb: env.AWS_ENDPOINT_URL_DYNAMODB,
    s3: env.AWS_ENDPOINT_URL_S3,
    states: env.AWS_ENDPOINT_URL_SFN,
  })

export type Clients = { dynamo: DynamoDBDocumentClient; s3: S3Client; sfn: SFNClient }

type Credentials = { accessKeyId: string; secretAccessKey: string }

/** The ordinary SDK clients; credentials come from the SDK's own chain unless given. */
export const connect = (settings: ServiceSettings, credentials?: Credentials): Clients => {
  const common = {
    region: settings.region,
    // Without these a call whose connection went dead would be waited for without an end.
    requestHandler: {
      connectionTimeout: limits.awsCallMs.connect,
      requestTimeout: limits.awsCallMs.answer,
      throwOnRequestTimeout: true,
    },
    ...(credentials ? { credentials } : {}),
  }
  const dynamo = new DynamoDBClient({
    ...common,
    ...(settings.dynamodb ? { endpoint: settings.dynamodb } : {}),
  })
  return {
    dynamo: DynamoDBDocumentClient.from(dynamo, {
      // The second is for maps with a key `constructor`, which the marshaller would take for an instance of a class.
      marshallOptions: { removeUndefinedValues: true, convertClassInstanceToMap: true },
    }),
    s3: new S3Client({
      ...common,
      // Presigned URLs are used by plain HTTP clients, which would not compute the SDK's optional checksums.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      ...(settings.s3 ? { endpoint: settings.s3, forcePathStyle: true } : {}),
    }),
    sfn: new SFNClient({ ...common, ...(settings.states ? { endpoint: settings.states } : {}) }),
  }
}
