/** An error that the caller is told by name, as Step Functions names it. */
export class ServiceError extends Error {
  /** `code` is the exception's name on the wire, for example `ExecutionDoesNotExist`. */
  constructor(code: string, message: string) {
    super(message)
    this.name = code
  }
}

/** For a request whose fields break the service's own constraints. */
export const invalidRequest = (message: string) => new ServiceError('ValidationException', message)
