/** The quotas of Step Functions Standard that this endpoint keeps. */
export const limits = {
  /** Bytes of JSON in a state's input or output, an execution's input, a task's result. */
  payloadBytes: 262_144,
  /** Events in one execution's history, the last of them included. */
  historyEvents: 25_000,
  nameCharacters: 80,
  errorCharacters: 256,
  causeCharacters: 32_768,
  tokenCharacters: 2_048,
  pageSize: 1_000,
  defaultPageSize: 100,
  /** Bytes of one request; a full payload with every character escaped fits. */
  requestBytes: 4 << 20,
}

/** Whether a JSON text is over the payload quota. */
export const exceedsPayload = (json: string): boolean =>
  json.length > limits.payloadBytes ||
  (json.length * 3 > limits.payloadBytes && Buffer.byteLength(json) > limits.payloadBytes)

/** The longest that the interpreter's own timers can wait, in seconds (24.8 days). */
export const longestWaitSeconds = 2_147_483
