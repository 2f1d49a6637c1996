/** Where the API writes what went wrong on our side; one line a fault, with the request's id. */
export type Log = (line: { level: 'error'; message: string; request_id: string; error: string }) => void
