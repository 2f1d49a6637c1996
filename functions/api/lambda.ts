import { Hono } from 'hono'
import { type LambdaContext, streamHandle } from 'hono/aws-lambda'
import { cloudPlatform } from '../cloud.ts'
import { createApp } from './app.ts'

/** Left of the function's time when a stream is ended, so that it ends as a whole event and never as a time-out. */
const reserveMs = 5_000

const { platform, version } = cloudPlatform(process.env)
const app = createApp(platform, { version, log: (line) => console.error(line) })

/** A body that ends after `ms`, whatever its source still has; the source is told to stop. */
const endingAfter = (body: ReadableStream<Uint8Array>, ms: number): ReadableStream<Uint8Array> => {
  const reader = body.getReader()
  const timer = setTimeout(() => void reader.cancel(), Math.max(0, ms))
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read()
      if (!done) return controller.enqueue(value)
      clearTimeout(timer)
      controller.close()
    },
    cancel: (reason) => {
      clearTimeout(timer)
      return reader.cancel(reason)
    },
  })
}

const lambda = new Hono<{ Bindings: { context: LambdaContext } }>()
lambda.all('*', async (c) => {
  const response = await app.fetch(c.req.raw, c.env)
  const follows = response.headers.get('content-type')?.startsWith('text/event-stream')
  if (!response.body || !follows) return response
  return new Response(
    endingAfter(response.body, c.env.context.getRemainingTimeInMillis() - reserveMs),
    response,
  )
})

/** API Gateway calls this with response streaming. */
export const handler = streamHandle(lambda)
