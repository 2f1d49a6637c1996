import { isDiskFull } from './room.ts'

/**
 * What the process does about an error that nobody awaited. A promise that was rejected has lost an answer and broken
 * nothing, and a disk without room is passed by: both are logged and the service goes on. Any other exception may have
 * left something half-done in memory: it is logged and the process ends, which the next start can deal with.
 */
export const surviveUnforeseen = (log: (line: string) => void): void => {
  const text = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error))
  process.on('unhandledRejection', (error) => log(`an error that nobody awaited: ${text(error)}`))
  process.on('uncaughtException', (error) => {
    log(`an error that nobody caught: ${text(error)}`)
    if (!isDiskFull(error)) process.exit(1)
  })
}
