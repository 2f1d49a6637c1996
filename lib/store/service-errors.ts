import { isThrottlingError, isTransientError } from '@smithy/core/retry'

const isThrown = (error: unknown): error is Parameters<typeof isTransientError>[0] => error instanceof Error

/** The services' words for a call that was signed by a clock that is off, or that was long on its way. */
const skewed = new Set(['RequestTimeTooSkewed', 'RequestExpired', 'RequestInTheFuture'])

/**
 * Whether an error of one of the three services says nothing against the call itself: the same call, made again, may
 * succeed. It was throttled, lost on its way, met a fault of the service, or was signed at the wrong time.
 */
export const isPassing = (error: unknown): boolean =>
  isThrown(error) &&
  (isPassing(error.cause) ||
    skewed.has(error.name) ||
    (error.name === 'InvalidSignatureException' &&
      /^Signature (expired|not yet current)/.test(error.message)) ||
    isThrottlingError(error) ||
    isTransientError(error))
