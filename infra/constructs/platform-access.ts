import type { TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import { Effect, PolicyStatement } from 'aws-cdk-lib/aws-iam'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { Bucket } from 'aws-cdk-lib/aws-s3'
import { uploadsPrefix } from '../../lib/store/keys.ts'

/** What the entry points work with, as far as a permission or an environment names it. */
export type PlatformResources = {
  table: TableV2
  bucket: Bucket
  stateMachineArn: string
  /** Matches every execution of the machine. */
  executionArns: string
}

/** The environment that `serviceSettings` reads; the region is Lambda's own. */
export const platformEnvironment = ({ table, bucket, stateMachineArn }: PlatformResources) => ({
  TABLE_NAME: table.tableName,
  BUCKET_NAME: bucket.bucketName,
  STATE_MACHINE_ARN: stateMachineArn,
})

const allow = (fn: IFunction, actions: string[], ...resources: string[]) =>
  fn.addToRolePolicy(new PolicyStatement({ effect: Effect.ALLOW, actions, resources }))

/**
 * Allows what `lib/store` calls and no more. Nothing may scan the table, and nothing but the sweep may delete an object of
 * a session (a journal is only ever added to, until its whole session goes) or stop an execution.
 */
export const grantPlatform = (fn: IFunction, resources: PlatformResources): void => {
  const { table, bucket, stateMachineArn, executionArns } = resources
  allow(fn, ['dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:DeleteItem', 'dynamodb:Query'], table.tableArn)
  allow(fn, ['dynamodb:Query'], `${table.tableArn}/index/*`)
  allow(fn, ['s3:GetObject', 's3:PutObject'], bucket.arnForObjects('teams/*'))
  // Without it a key that is not there reads as forbidden. No prefix condition: a GET has none to match.
  allow(fn, ['s3:ListBucket'], bucket.bucketArn)
  allow(fn, ['states:StartExecution', 'states:SendTaskSuccess', 'states:SendTaskFailure'], stateMachineArn)
  allow(fn, ['states:DescribeExecution'], executionArns)
}

/** What only the API needs besides: the workers' heartbeats, histories for people to read, and uploads to import from. */
export const grantApiPlatform = (fn: IFunction, resources: PlatformResources): void => {
  grantPlatform(fn, resources)
  allow(fn, ['states:SendTaskHeartbeat'], resources.stateMachineArn)
  allow(fn, ['states:GetExecutionHistory'], resources.executionArns)
  const uploads = resources.bucket.arnForObjects(`${uploadsPrefix}*`)
  allow(fn, ['s3:GetObject', 's3:PutObject', 's3:DeleteObject'], uploads)
}

/** What only the sweep needs besides: to put off what can't be read, to remove old sessions, to end lost executions. */
export const grantSweepPlatform = (fn: IFunction, resources: PlatformResources): void => {
  const { table, bucket, stateMachineArn, executionArns } = resources
  grantPlatform(fn, resources)
  allow(fn, ['dynamodb:UpdateItem'], table.tableArn)
  allow(fn, ['s3:DeleteObject'], bucket.arnForObjects('teams/*'))
  allow(fn, ['states:ListExecutions'], stateMachineArn)
  allow(fn, ['states:StopExecution'], executionArns)
}
