import { App } from 'aws-cdk-lib'
import { GatehouseStack } from './stacks/gatehouse.ts'

const app = new App()
new GatehouseStack(app, 'Gatehouse', { description: 'Gatehouse: a hosted backend for coding sessions' })
