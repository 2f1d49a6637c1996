import { cloudPlatform } from '../cloud.ts'
import { createStepHandler } from './handler.ts'

const handle = createStepHandler(cloudPlatform(process.env).platform)

/** Step Functions calls this; what it throws is the fault that the machine's Retry and Catch see. */
export const handler = async (event: unknown) => {
  try {
    return await handle(event)
  } catch (fault) {
    // The machine is told in a line; what happened stands in the log.
    console.error(fault instanceof Error ? fault.cause : fault)
    throw fault
  }
}
