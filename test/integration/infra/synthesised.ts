import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { App } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import { z } from 'zod'
import { GatehouseStack } from '../../../infra/stacks/gatehouse.ts'

const cdk = z
  .object({ context: z.record(z.string(), z.unknown()) })
  .parse(JSON.parse(readFileSync(join(import.meta.dirname, '../../../cdk.json'), 'utf8')))

const functionSchema = z.object({
  Properties: z.looseObject({
    Description: z.string(),
    Environment: z.object({ Variables: z.record(z.string(), z.unknown()) }),
  }),
  Metadata: z.object({ 'aws:asset:path': z.string() }),
})

/** The stack as `cdk synth` makes it, and where its bundles are. */
export const synthesise = (outdir: string) => {
  const app = new App({ outdir, context: cdk.context, analyticsReporting: false })
  const stack = new GatehouseStack(app, 'Gatehouse')
  const template = Template.fromStack(stack)
  const functions = new Map(
    Object.entries(template.findResources('AWS::Lambda::Function')).map(([id, resource]) => {
      const { Properties, Metadata } = functionSchema.parse(resource)
      return [id.replace(/[0-9A-F]{8}$/, ''), { ...Properties, bundle: join(outdir, Metadata['aws:asset:path']) }]
    }),
  )
  return { template, functions }
}
