import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Duration, RemovalPolicy } from 'aws-cdk-lib'
import { Architecture, LoggingFormat, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda'
import { LogLevel, NodejsFunction, OutputFormat, SourceMapMode } from 'aws-cdk-lib/aws-lambda-nodejs'
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs'
import type { Construct } from 'constructs'

const projectRoot = join(import.meta.dirname, '../..')

const { version }: { version: string } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'))

export type ProductFunctionProps = {
  /** The entry point's folder under `functions/`. */
  folder: string
  description: string
  timeout: Duration
  memoryMb: number
  environment: Record<string, string>
  /** Files of packages that the function serves as they are, by their places in `node_modules`; they lie beside the bundle. */
  files?: string[]
}

/** One of our Lambda functions: `functions/<folder>/lambda.ts` in one bundle that brings its own SDK. */
export class ProductFunction extends NodejsFunction {
  constructor(scope: Construct, id: string, props: ProductFunctionProps) {
    super(scope, id, {
      entry: join(projectRoot, 'functions', props.folder, 'lambda.ts'),
      projectRoot,
      depsLockFilePath: join(projectRoot, 'package-lock.json'),
      description: props.description,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      memorySize: props.memoryMb,
      timeout: props.timeout,
      environment: { SERVICE_VERSION: version, NODE_OPTIONS: '--enable-source-maps', ...props.environment },
      awsSdkConnectionReuse: false,
      tracing: Tracing.ACTIVE,
      loggingFormat: LoggingFormat.JSON,
      logGroup: new LogGroup(scope, `${id}Log`, {
        retention: RetentionDays.THREE_MONTHS,
        removalPolicy: RemovalPolicy.DESTROY,
      }),
      bundling: {
        format: OutputFormat.ESM,
        target: 'node24',
        commandHooks: {
          beforeBundling: () => [],
          beforeInstall: () => [],
          afterBundling: (input, output) =>
            (props.files ?? []).map((file) => `cp "${input}/node_modules/${file}" "${output}/"`),
        },
        logLevel: LogLevel.ERROR,
        minify: true,
        keepNames: true,
        sourceMap: true,
        sourceMapMode: SourceMapMode.DEFAULT,
        sourcesContent: false,
        mainFields: ['module', 'main'],
        // The SDK that was tested is the one that runs.
        externalModules: [],
        // Some dependencies are CommonJS and call require for Node's own modules.
        banner:
          "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
      },
    })
  }
}
