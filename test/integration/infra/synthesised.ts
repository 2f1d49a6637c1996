import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { App } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import { z } from 'zod'
import { GatehouseStack } from '../../../infra/stacks/gatehouse.ts'

const cdk = z
  .object({ context: z.record(z.string(), z.unknown()) })
  .parse(JSON.parse(readFileSync(join(import.meta.dirname, '../../../cdk.json'), 'utf8')))

/** The stack's template, synthesised with the context of cdk.json into `outdir`; the bundles only when asked for. */
export const synthesise = (outdir: string, options: { bundle: boolean }): Template => {
  const app = new App({
    outdir,
    analyticsReporting: false,
    context: {
      ...cdk.context,
      'aws:cdk:enable-asset-metadata': true,
      ...(options.bundle ? {} : { 'aws:cdk:bundling-stacks': [] }),
    },
  })
  return Template.fromStack(new GatehouseStack(app, 'Gatehouse'))
}
