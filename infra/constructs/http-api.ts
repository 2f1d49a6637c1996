import type { Duration } from 'aws-cdk-lib'
import {
  AuthorizationType,
  EndpointType,
  LambdaIntegration,
  ResponseTransferMode,
  RestApi,
} from 'aws-cdk-lib/aws-apigateway'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { Construct } from 'constructs'

/** The public face: every path goes to the API function, which authenticates each call itself. */
export class HttpApi extends Construct {
  readonly url: string

  constructor(scope: Construct, id: string, props: { handler: IFunction; timeout: Duration }) {
    super(scope, id)
    const api = new RestApi(this, 'Rest', {
      description: 'Gatehouse',
      // A regional endpoint keeps an idle stream open for five minutes, an edge one for thirty seconds.
      endpointTypes: [EndpointType.REGIONAL],
      cloudWatchRole: false,
      deployOptions: {
        stageName: 'api',
        tracingEnabled: true,
        metricsEnabled: true,
        throttlingRateLimit: 500,
        throttlingBurstLimit: 1000,
      },
      defaultMethodOptions: { authorizationType: AuthorizationType.NONE },
      defaultIntegration: new LambdaIntegration(props.handler, {
        responseTransferMode: ResponseTransferMode.STREAM,
        timeout: props.timeout,
        scopePermissionToMethod: false,
      }),
    })
    api.root.addMethod('ANY')
    api.root.addProxy({ anyMethod: true })
    this.url = api.url
  }
}
