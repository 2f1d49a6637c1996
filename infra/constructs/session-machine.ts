import { RemovalPolicy } from 'aws-cdk-lib'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs'
import { DefinitionBody, LogLevel, StateMachine, StateMachineType } from 'aws-cdk-lib/aws-stepfunctions'
import { Construct } from 'constructs'
import { buildDefinition } from '../../lib/machine/definition.ts'

/** The machine of session attempts: the very JSON that `lib/machine` builds, with the step function's ARN put in. */
export class SessionMachine extends Construct {
  constructor(scope: Construct, id: string, props: { name: string; stepFunction: IFunction }) {
    super(scope, id)
    const machine = new StateMachine(this, 'Machine', {
      stateMachineName: props.name,
      stateMachineType: StateMachineType.STANDARD,
      definitionBody: DefinitionBody.fromString(JSON.stringify(buildDefinition())),
      definitionSubstitutions: { StepFunctionArn: props.stepFunction.functionArn },
      tracingEnabled: true,
      logs: {
        level: LogLevel.ALL,
        // Inputs hold task tokens, which don't belong in a log; the execution's own history has the data.
        includeExecutionData: false,
        destination: new LogGroup(this, 'Log', {
          // This prefix keeps the account's log resource policy from growing with every machine.
          logGroupName: `/aws/vendedlogs/states/${props.name}`,
          retention: RetentionDays.THREE_MONTHS,
          removalPolicy: RemovalPolicy.DESTROY,
        }),
      },
      removalPolicy: RemovalPolicy.DESTROY,
    })
    props.stepFunction.grantInvoke(machine)
  }
}
