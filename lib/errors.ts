/** What a caller should make of an error: whether the same call can ever succeed, and whose fault it is. */
export type Remedy = 'permanent' | 'conflict' | 'transient' | 'infrastructure'

/** Every stable error code with its HTTP status, title and remedy; the API's problem answers and documentation are made from it. */
export const errorCodes = {
  malformed_request: { status: 400, title: 'This is not HTTP as it should be', remedy: 'permanent' },
  request_timeout: { status: 408, title: 'The request took too long to arrive', remedy: 'transient' },
  headers_too_large: { status: 431, title: 'The headers are too large', remedy: 'permanent' },
  foreign_caller: { status: 403, title: 'The call came from elsewhere', remedy: 'permanent' },
  invalid_json: { status: 400, title: 'The body is not JSON', remedy: 'permanent' },
  invalid_request: { status: 422, title: 'The request does not validate', remedy: 'permanent' },
  invalid_cursor: {
    status: 422,
    title: 'There is nothing to go on from at this cursor',
    remedy: 'permanent',
  },
  invalid_contract: { status: 422, title: 'The contract is not valid', remedy: 'permanent' },
  repository_refused: { status: 422, title: 'This repository address is not accepted', remedy: 'permanent' },
  engine_unavailable: { status: 422, title: 'This engine is not available', remedy: 'permanent' },
  not_available: { status: 422, title: 'This option is not available', remedy: 'permanent' },
  unauthenticated: { status: 401, title: 'A valid bearer token is needed', remedy: 'permanent' },
  forbidden: { status: 403, title: 'This token may not do that', remedy: 'permanent' },
  not_found: { status: 404, title: 'Not found', remedy: 'permanent' },
  method_not_allowed: { status: 405, title: 'This method is not allowed here', remedy: 'permanent' },
  already_decided: { status: 409, title: 'This was already decided', remedy: 'conflict' },
  illegal_transition: {
    status: 409,
    title: 'The session is not in a state that allows this',
    remedy: 'conflict',
  },
  already_exists: { status: 409, title: 'This session is there already', remedy: 'conflict' },
  not_exportable: {
    status: 409,
    title: 'The session holds a record that this form has no place for',
    remedy: 'permanent',
  },
  invalid_archive: { status: 422, title: 'The archive can not be imported', remedy: 'permanent' },
  invalid_records: { status: 422, title: 'The records can not be imported', remedy: 'permanent' },
  contract_moved: { status: 409, title: 'The contract is not the one named', remedy: 'conflict' },
  review_moved: { status: 409, title: 'The review is not the one named', remedy: 'conflict' },
  superseded: { status: 409, title: 'Another worker holds this session', remedy: 'conflict' },
  record_refused: { status: 422, title: 'The record can’t stand here', remedy: 'permanent' },
  conflict: { status: 409, title: 'Another change came first', remedy: 'transient' },
  idempotency_in_progress: {
    status: 409,
    title: 'The first call with this key is still running',
    remedy: 'transient',
  },
  idempotency_mismatch: {
    status: 422,
    title: 'This idempotency key was used with another body',
    remedy: 'permanent',
  },
  precondition_failed: { status: 412, title: 'The session has moved on', remedy: 'conflict' },
  payload_too_large: { status: 413, title: 'The body is too large', remedy: 'permanent' },
  unsupported_media_type: { status: 415, title: 'The body has to be application/json', remedy: 'permanent' },
  journal_damaged: { status: 500, title: 'The journal does not verify', remedy: 'permanent' },
  unavailable: { status: 503, title: 'Not now; try again', remedy: 'transient' },
  compute_unavailable: { status: 503, title: 'No worker could be started', remedy: 'infrastructure' },
  internal: { status: 500, title: 'Something went wrong here', remedy: 'transient' },
} as const satisfies Record<string, { status: number; title: string; remedy: Remedy }>

export type ErrorCode = keyof typeof errorCodes

/** One place in a request body that does not validate; `path` is a JSON pointer-like dotted path. */
export type FieldError = { path: string; message: string }

/** The one error class of the domain. Thrown wherever a caller is told no; callers branch on `code` alone. */
export class GatehouseError extends Error {
  readonly code: ErrorCode
  readonly errors: FieldError[] | undefined
  /** Facts that belong to the answer, such as the current session of a conflict. */
  readonly extra: Record<string, unknown>

  constructor(
    code: ErrorCode,
    detail: string,
    options: { errors?: FieldError[]; extra?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(detail, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'GatehouseError'
    this.code = code
    this.errors = options.errors
    this.extra = options.extra ?? {}
  }

  get status(): number {
    return errorCodes[this.code].status
  }
}

/** True for a GatehouseError of one of the given codes (of any code when none is given). */
export const isError = (error: unknown, ...codes: ErrorCode[]): error is GatehouseError =>
  error instanceof GatehouseError && (codes.length === 0 || codes.includes(error.code))
