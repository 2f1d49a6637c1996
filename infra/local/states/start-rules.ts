import { exceedsPayload, limits } from './limits.ts'
import { ServiceError } from './service-error.ts'

/** Throws `InvalidName` for what can't name an execution. */
export function requireName(name: string): void {
  const valid = name.length >= 1 && name.length <= limits.nameCharacters && !forbiddenInName.test(name)
  if (!valid) throw new ServiceError('InvalidName', `Invalid Name: '${name}'`)
}

const forbiddenInName = /[\s<>{}[\]?*"#%\\^|~`$&,;:/\p{Cc}\p{Cs}\ufffe\uffff]/u

/** Throws `InvalidExecutionInput` for what is no JSON or over the payload quota. */
export function requireInput(input: string): void {
  if (exceedsPayload(input)) {
    throw new ServiceError(
      'InvalidExecutionInput',
      `Invalid State Machine Execution Input: 'over ${limits.payloadBytes} bytes'`,
    )
  }
  if (!isJson(input)) {
    throw new ServiceError('InvalidExecutionInput', "Invalid State Machine Execution Input: 'not valid JSON'")
  }
}

/** Whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
