import { ArnFormat, CfnOutput, Duration, Stack, type StackProps } from 'aws-cdk-lib'
import { Rule, Schedule } from 'aws-cdk-lib/aws-events'
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets'
import type { Construct } from 'constructs'
import { HttpApi } from '../constructs/http-api.ts'
import {
  grantApiPlatform,
  grantPlatform,
  grantSweepPlatform,
  type PlatformResources,
  platformEnvironment,
} from '../constructs/platform-access.ts'
import { ProductFunction } from '../constructs/product-function.ts'
import { SessionMachine } from '../constructs/session-machine.ts'
import { Storage } from '../constructs/storage.ts'

/** The longest that one call may take; a follower of a session is cut off before it and resumes where it was. */
const apiTimeout = Duration.minutes(5)

/** Gatehouse on AWS: storage, state machine, step handler, API and sweep. */
export class GatehouseStack extends Stack {
  constructor(scope: Construct, id: string, props: StackProps = {}) {
    super(scope, id, props)
    const { table, bucket } = new Storage(this, 'Storage')
    // The machine calls the step function, which names the machine: a fixed name keeps this from being a circle.
    const machineName = `${this.stackName}-session`
    const statesArn = (resource: string, resourceName: string) =>
      this.formatArn({ service: 'states', resource, resourceName, arnFormat: ArnFormat.COLON_RESOURCE_NAME })
    const platform: PlatformResources = {
      table,
      bucket,
      stateMachineArn: statesArn('stateMachine', machineName),
      executionArns: statesArn('execution', `${machineName}:*`),
    }
    const environment = platformEnvironment(platform)

    const step = new ProductFunction(this, 'StepFunction', {
      folder: 'steps',
      description: 'The steps of a session, one validated transition each',
      timeout: Duration.seconds(60),
      memoryMb: 512,
      environment,
    })
    grantPlatform(step, platform)
    new SessionMachine(this, 'Session', { name: machineName, stepFunction: step })

    const api = new ProductFunction(this, 'ApiFunction', {
      folder: 'api',
      description: 'The HTTP API',
      timeout: apiTimeout,
      memoryMb: 1024,
      environment,
      files: ['swagger-ui.css', 'swagger-ui-bundle.js'].map((name) => `swagger-ui-dist/${name}`),
    })
    grantApiPlatform(api, platform)
    const http = new HttpApi(this, 'Api', { handler: api, timeout: apiTimeout })

    const sweep = new ProductFunction(this, 'SweepFunction', {
      folder: 'sweep',
      description: 'Repairs whatever a crash left half-done',
      timeout: Duration.minutes(5),
      // It holds a long journal's sealed object (`limits.seal`), twice while it puts it together.
      memoryMb: 1024,
      environment,
    })
    grantSweepPlatform(sweep, platform)
    new Rule(this, 'SweepSchedule', {
      schedule: Schedule.rate(Duration.minutes(1)),
      // A missed sweep is made up for by the next one.
      targets: [new LambdaFunction(sweep, { retryAttempts: 0, maxEventAge: Duration.minutes(1) })],
    })

    new CfnOutput(this, 'ApiUrl', { value: http.url })
    new CfnOutput(this, 'TableName', { value: table.tableName })
    new CfnOutput(this, 'BucketName', { value: bucket.bucketName })
    new CfnOutput(this, 'StateMachineArn', { value: platform.stateMachineArn })
  }
}
