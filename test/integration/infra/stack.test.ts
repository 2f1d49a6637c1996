import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Match, type Template } from 'aws-cdk-lib/assertions'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { buildDefinition } from '../../../lib/machine/definition.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { createTableInput, tableShape } from '../../../lib/store/table.ts'
import { synthesise } from './synthesised.ts'

let outdir: string
let template: Template
beforeAll(async () => {
  outdir = await mkdtemp(join(tmpdir(), 'gatehouse-stack-'))
  template = synthesise(outdir, { bundle: false })
})
afterAll(() => rm(outdir, { recursive: true, force: true }))

const propertiesOf = (type: string) =>
  Object.values(template.findResources(type)).map((resource) =>
    z.record(z.string(), z.unknown()).parse(resource.Properties),
  )

const statementSchema = z.object({
  Effect: z.enum(['Allow', 'Deny']),
  Action: z.union([z.string().transform((action) => [action]), z.array(z.string())]),
  Resource: z.unknown(),
})
const policySchema = z.object({
  PolicyDocument: z.object({ Statement: z.array(statementSchema) }),
  Roles: z.array(z.object({ Ref: z.string() })),
})
/** What the role of a function or machine is allowed, by the role's name. */
const allowed = (role: RegExp) =>
  propertiesOf('AWS::IAM::Policy')
    .map((properties) => policySchema.parse(properties))
    .filter(({ Roles }) => Roles.some(({ Ref }) => role.test(Ref)))
    .flatMap(({ PolicyDocument }) => PolicyDocument.Statement)

describe('the table', () => {
  it('is the one that the embedded stack makes', () => {
    const { TableName: _name, ...shape } = createTableInput('any')
    template.hasResourceProperties('AWS::DynamoDB::GlobalTable', shape)
  })

  it('expires items, can be restored to any second, is encrypted, and is not deleted with the stack', () => {
    template.hasResource('AWS::DynamoDB::GlobalTable', {
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        TimeToLiveSpecification: { AttributeName: tableShape.ttl, Enabled: true },
        SSESpecification: { SSEEnabled: true },
        Replicas: [
          Match.objectLike({
            PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
            DeletionProtectionEnabled: true,
          }),
        ],
      },
    })
  })
})

describe('the bucket', () => {
  it('is never public, keeps every version, is encrypted, and is not deleted with the stack', () => {
    template.hasResource('AWS::S3::Bucket', {
      DeletionPolicy: 'Retain',
      Properties: {
        PublicAccessBlockConfiguration: {
          BlockPublicAcls: true,
          BlockPublicPolicy: true,
          IgnorePublicAcls: true,
          RestrictPublicBuckets: true,
        },
        VersioningConfiguration: { Status: 'Enabled' },
        BucketEncryption: Match.anyValue(),
        LifecycleConfiguration: {
          Rules: Match.arrayWith([
            Match.objectLike({ AbortIncompleteMultipartUpload: { DaysAfterInitiation: 7 } }),
          ]),
        },
      },
    })
  })

  it('lets uploads that nobody imported expire, and nothing of a session', () => {
    const [bucket] = propertiesOf('AWS::S3::Bucket')
    const { Rules } = z
      .object({
        LifecycleConfiguration: z.object({
          Rules: z.array(
            z.object({ Prefix: z.string().optional(), ExpirationInDays: z.number().optional() }).loose(),
          ),
        }),
      })
      .parse(bucket).LifecycleConfiguration
    const expiring = Rules.filter(({ ExpirationInDays: days }) => days !== undefined)
    expect(expiring).toMatchObject([{ Prefix: 'imports/', ExpirationInDays: 1 }])
    expect(objectKey.upload('team', 'x').startsWith('imports/')).toBe(true)
    expect(objectKey.session('team', 'x').startsWith('imports/')).toBe(false)
  })

  it('refuses plain HTTP', () => {
    template.hasResourceProperties('AWS::S3::BucketPolicy', {
      PolicyDocument: {
        Statement: Match.arrayWith([
          Match.objectLike({ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } }),
        ]),
      },
    })
  })
})

describe('the state machine', () => {
  it('is the very definition that lib/machine builds, with the step function put in', () => {
    template.hasResourceProperties('AWS::StepFunctions::StateMachine', {
      StateMachineName: 'Gatehouse-session',
      StateMachineType: 'STANDARD',
      DefinitionString: JSON.stringify(buildDefinition()),
      DefinitionSubstitutions: {
        StepFunctionArn: { 'Fn::GetAtt': [Match.stringLikeRegexp('^StepFunction'), 'Arn'] },
      },
    })
  })

  it('is logged and traced, and no task token reaches the log', () => {
    template.hasResourceProperties('AWS::StepFunctions::StateMachine', {
      LoggingConfiguration: { Level: 'ALL', IncludeExecutionData: false },
      TracingConfiguration: { Enabled: true },
    })
  })

  it('may call the step function and nothing else of ours', () => {
    const actions = allowed(/^SessionMachine/).flatMap(({ Action }) => Action)
    expect(actions.filter((action) => !/^(logs|xray):/.test(action))).toEqual(['lambda:InvokeFunction'])
  })
})

describe('the functions', () => {
  it('run on Node 24 and know the table, the bucket and the machine', () => {
    const functions = propertiesOf('AWS::Lambda::Function')
    expect(functions).toHaveLength(3)
    template.allResourcesProperties('AWS::Lambda::Function', {
      Runtime: 'nodejs24.x',
      TracingConfig: { Mode: 'Active' },
      LoggingConfig: { LogFormat: 'JSON' },
      Environment: {
        Variables: {
          TABLE_NAME: { Ref: Match.stringLikeRegexp('^StorageTable') },
          BUCKET_NAME: { Ref: Match.stringLikeRegexp('^StorageBucket') },
          STATE_MACHINE_ARN: Match.objectLike({ 'Fn::Join': Match.anyValue() }),
        },
      },
    })
  })

  it.each([
    ['StepFunction', []],
    [
      'SweepFunction',
      [...['dynamodb:UpdateItem', 's3:DeleteObject'], ...['states:ListExecutions', 'states:StopExecution']],
    ],
    ['ApiFunction', ['s3:DeleteObject', 'states:GetExecutionHistory', 'states:SendTaskHeartbeat']],
  ])('%s may do what lib/store does and no more', (name, besides) => {
    const actions = allowed(new RegExp(`^${name}`)).flatMap(({ Action }) => Action)
    expect([...new Set(actions)].filter((action) => !action.startsWith('xray:')).sort()).toEqual(
      [
        'dynamodb:DeleteItem',
        'dynamodb:GetItem',
        'dynamodb:PutItem',
        'dynamodb:Query',
        's3:GetObject',
        's3:ListBucket',
        's3:PutObject',
        'states:DescribeExecution',
        'states:SendTaskFailure',
        'states:SendTaskSuccess',
        'states:StartExecution',
        ...besides,
      ].sort(),
    )
  })

  it('the API may delete uploads, and nothing of a session', () => {
    const deleting = allowed(/^ApiFunction/).filter(({ Action }) => Action.includes('s3:DeleteObject'))
    expect(deleting).toHaveLength(1)
    expect(JSON.stringify(deleting[0]?.Resource)).toContain('/imports/*"')
  })

  it('no permission has a wildcard for an action, and only tracing and log delivery one for a resource', () => {
    const statements = allowed(/./).filter(({ Effect }) => Effect === 'Allow')
    expect(statements.length).toBeGreaterThan(0)
    for (const { Action, Resource } of statements) {
      expect(Action.join()).not.toContain('*')
      if (Resource === '*') expect(Action.every((action) => /^(logs|xray):/.test(action))).toBe(true)
    }
  })

  it('the sweep runs every minute', () => {
    template.hasResourceProperties('AWS::Events::Rule', {
      ScheduleExpression: 'rate(1 minute)',
      State: 'ENABLED',
      Targets: [
        Match.objectLike({ Arn: { 'Fn::GetAtt': [Match.stringLikeRegexp('^SweepFunction'), 'Arn'] } }),
      ],
    })
  })
})

describe('the API', () => {
  it('answers every path as a stream, from a regional endpoint', () => {
    template.hasResourceProperties('AWS::ApiGateway::RestApi', {
      EndpointConfiguration: { Types: ['REGIONAL'] },
    })
    template.resourceCountIs('AWS::ApiGateway::Method', 2)
    template.allResourcesProperties('AWS::ApiGateway::Method', {
      HttpMethod: 'ANY',
      Integration: {
        Type: 'AWS_PROXY',
        ResponseTransferMode: 'STREAM',
        Uri: {
          'Fn::Join': ['', Match.arrayWith([Match.stringLikeRegexp('/response-streaming-invocations$')])],
        },
      },
    })
  })
})
