/**
 * Texts as the body of an answer. A text is asked for only when the one before it was taken, and a reader that is gone
 * aborts the signal that `texts` was given. What they throw is told to `onFault` and ends the body.
 */
export const streamOf = (
  texts: (signal: AbortSignal) => AsyncGenerator<string>,
  onFault: (error: unknown) => void,
): ReadableStream<Uint8Array> => {
  const gone = new AbortController()
  const source = texts(gone.signal)
  const encoder = new TextEncoder()
  const take = async (): Promise<string | null> => {
    try {
      const { done, value } = await source.next()
      return done ? null : value
    } catch (error) {
      if (!gone.signal.aborted) onFault(error)
      return null
    }
  }
  return new ReadableStream(
    {
      async pull(controller) {
        const text = await take()
        if (gone.signal.aborted) return
        if (text === null) controller.close()
        else controller.enqueue(encoder.encode(text))
      },
      async cancel() {
        gone.abort()
        await source.return(null)
      },
    },
    // Nothing is read for an answer whose body nobody asks for.
    { highWaterMark: 0 },
  )
}
