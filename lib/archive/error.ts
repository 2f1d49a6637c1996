/** Thrown when an archive is not one that can be imported; the message says what is wrong with it. */
export class ArchiveError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'ArchiveError'
  }
}
