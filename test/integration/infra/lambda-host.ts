import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { z } from 'zod'

/**
 * Runs one bundle as Lambda's Node runtime does: it is imported once, gets events one by one, and streams an HTTP
 * answer as a JSON prelude, eight zero bytes and the body. Talks to its parent by IPC messages.
 */
const streaming = Symbol.for('aws.lambda.runtime.handler.streaming')
Object.assign(globalThis, {
  awslambda: {
    streamifyResponse: (handler: object) => Object.assign(handler, { [streaming]: 'response' }),
    HttpResponseStream: {
      from: (stream: PassThrough, prelude: object) => {
        stream.write(JSON.stringify(prelude))
        stream.write(new Uint8Array(8))
        return stream
      },
    },
  },
})

const callSchema = z.object({ id: z.number(), event: z.unknown(), remaining_ms: z.number() })
const bundleSchema = z.object({
  handler: z.custom<((...input: unknown[]) => Promise<unknown>) & { [streaming]?: unknown }>(
    (value) => typeof value === 'function',
  ),
})
const { handler } = bundleSchema.parse(await import(process.argv[2] ?? ''))

const invoke = async (event: unknown, context: object) => {
  if (!(streaming in handler)) return { result: (await handler(event, context)) ?? null }
  const stream = new PassThrough()
  const [bytes] = await Promise.all([buffer(stream), handler(event, stream, context)])
  const end = bytes.indexOf(new Uint8Array(8))
  return { prelude: JSON.parse(bytes.toString('utf8', 0, end)), body: bytes.toString('utf8', end + 8) }
}

process.on('message', async (message) => {
  const { id, event, remaining_ms } = callSchema.parse(message)
  const ends = Date.now() + remaining_ms
  const context = { awsRequestId: String(id), getRemainingTimeInMillis: () => ends - Date.now() }
  try {
    process.send?.({ id, ...(await invoke(event, context)) })
  } catch (error) {
    const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
    process.send?.({ id, error: { name, message } })
  }
})
process.send?.({ ready: true })
