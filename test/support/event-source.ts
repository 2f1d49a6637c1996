import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** The events of an answer, a chunk at a time as they arrive; leaving the loop breaks the connection off. */
export async function* eventsOf(answer: Response): AsyncGenerator<EventSourceMessage[]> {
  let events: EventSourceMessage[] = []
  const parser = createParser({
    onEvent: (event) => {
      events.push(event)
    },
  })
  for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    parser.feed(text)
    yield events
    events = []
  }
}

/** All events of an answer that ends by itself. */
export const allEvents = async (answer: Response): Promise<EventSourceMessage[]> => {
  const all: EventSourceMessage[] = []
  for await (const events of eventsOf(answer)) all.push(...events)
  return all
}
