import { cloudPlatform } from '../cloud.ts'
import { createStepHandler } from './handler.ts'

/** Step Functions calls this; what it throws is the fault that the machine's Retry and Catch see. */
export const handler = createStepHandler(cloudPlatform(process.env).platform)
