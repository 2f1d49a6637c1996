import type { PlainContent } from './content.ts'
import type { Activity } from './external.ts'
import { type AssistantMessage, declaredCalls, type Message, type ToolResultMessage } from './messages.ts'
import type {
  AssistantPart,
  FilePart,
  ModelMessage,
  ToolOutput,
  ToolResultPart,
  UserPart,
} from './model-message.ts'
import type { ToolCall } from './projection.ts'
import { contextOf, findCall, messagesAfter, type View } from './view.ts'

type Image = Extract<PlainContent[number], { type: 'image' }>

/** An image that is named and not held: its web address, or whatever else as an `artifact:` one for the caller to fill in. */
const addressOf = (reference: string): URL =>
  /^https?:/i.test(reference) && URL.canParse(reference)
    ? new URL(reference)
    : new URL(`artifact:${encodeURIComponent(reference)}`)

const filePart = ({ mime_type, source }: Image): FilePart => ({
  type: 'file',
  mediaType: mime_type,
  data:
    source.type === 'reference'
      ? { type: 'url', url: addressOf(source.reference) }
      : { type: 'data', data: source.data },
})

const userPart = (block: PlainContent[number]): UserPart =>
  block.type === 'text' ? { type: 'text', text: block.text } : filePart(block)

const errorText = ({ content }: ToolResultMessage): string =>
  content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')

/** An error that shows an image keeps it, and says in words that it is one, for want of another place to say it. */
const outputOf = (result: ToolResultMessage): ToolOutput => {
  const { content, is_error, error } = result
  const [first, ...others] = content
  if (is_error && content.every((block) => block.type === 'text'))
    return { type: 'error-text', value: errorText(result) }
  if (is_error)
    return {
      type: 'content',
      value: [{ type: 'text', text: `error ${error?.code}: ${error?.message}` }, ...content.map(userPart)],
    }
  return first?.type === 'text' && others.length === 0
    ? { type: 'text', value: first.text }
    : { type: 'content', value: content.map(userPart) }
}

/** What closes a call that has no result: a model is never shown one that is left open. */
const unanswered = (call: ToolCall | undefined): ToolOutput => ({
  type: 'error-text',
  value:
    call === undefined || call.execution.status === 'not_started'
      ? 'This call has no result; it was not run.'
      : 'This call has no result; whether it took effect is not known.',
})

const sourceOf = ({ url, title, snippet }: Activity['sources'][number]) => ({
  url,
  ...(title === undefined ? {} : { title }),
  ...(snippet === undefined ? {} : { snippet }),
})

/** A tool that the provider ran itself, as the call and the result that it knows them by. */
const hostedParts = ({
  provider_call_id,
  tool_name,
  arguments: input,
  ...rest
}: Activity): AssistantPart[] => {
  const call = { toolCallId: provider_call_id, toolName: tool_name }
  const { outcome, sources, continuation } = rest
  const output: ToolOutput =
    outcome.status === 'error'
      ? { type: 'error-json', value: outcome.error }
      : { type: 'json', value: { sources: sources.map(sourceOf) } }
  const options = continuation && {
    providerOptions: { [continuation.provider]: JSON.parse(JSON.stringify(continuation)) },
  }
  return [
    { type: 'tool-call', ...call, input, providerExecuted: true },
    { type: 'tool-result', ...call, output, ...options },
  ]
}

const assistantPart = (block: AssistantMessage['content'][number]): AssistantPart[] => {
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: block.text }]
    case 'thinking':
      return [{ type: 'reasoning', text: block.text }]
    case 'tool_call': {
      const { tool_call_id, provider_call_id, tool_name: toolName, arguments: input } = block
      return [{ type: 'tool-call', toolCallId: provider_call_id ?? tool_call_id, toolName, input }]
    }
    case 'hosted_tool':
      return hostedParts(block.activity)
    // A citation is for people, and no provider takes one back.
    case 'citation':
      return []
  }
}

/** The calls that are shown, and their results, by call. */
type Calls = {
  readonly shown: ReadonlySet<string>
  readonly results: ReadonlyMap<string, ToolResultMessage>
  readonly find: (id: string) => ToolCall | undefined
}

/** The results of a message's calls, in the model's order and right behind it, wherever they were committed. */
const resultsOf = (message: AssistantMessage, calls: Calls): ToolResultPart[] =>
  declaredCalls(message).map(({ tool_call_id, provider_call_id, tool_name }) => {
    const result = calls.results.get(tool_call_id)
    return {
      type: 'tool-result',
      toolCallId: provider_call_id ?? tool_call_id,
      toolName: tool_name,
      output: result ? outputOf(result) : unanswered(calls.find(tool_call_id)),
    }
  })

const spoken = (message: AssistantMessage, calls: Calls): ModelMessage[] => {
  const content = message.content.flatMap(assistantPart)
  const answers = resultsOf(message, calls)
  return [
    ...(content.length > 0 ? [{ role: 'assistant', content } as const] : []),
    ...(answers.length > 0 ? [{ role: 'tool', content: answers } as const] : []),
  ]
}

/** A summary is told as the user's, since it speaks of the conversation and providers want a user to begin. */
const summarised = ({ content }: Message): ModelMessage[] => {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  const text = ['Summary of the conversation so far:', ...texts].join('\n\n')
  return [{ role: 'user', content: [{ type: 'text', text }] }]
}

/** A result whose call went into a summary can't be a tool's any more; what it says is kept. */
const orphaned = (result: ToolResultMessage): ModelMessage => ({
  role: 'user',
  content: [
    { type: 'text', text: `Result of ${result.tool_name}, which was called before this point:` },
    ...result.content.map(userPart),
  ],
})

const told = (message: Message, calls: Calls): ModelMessage[] => {
  switch (message.type) {
    case 'user':
      return [{ role: 'user', content: message.content.map(userPart) }]
    case 'assistant':
      return spoken(message, calls)
    case 'tool_result':
      return calls.shown.has(message.tool_call_id) ? [] : [orphaned(message)]
  }
}

const callsOf = (messages: readonly Message[]): Omit<Calls, 'find'> => ({
  shown: new Set(messages.flatMap(declaredCalls).map((call) => call.tool_call_id)),
  results: new Map(
    messages
      .filter((message) => message.type === 'tool_result')
      .map((result) => [result.tool_call_id, result]),
  ),
})

/**
 * The exact message list for a model, from any place in a history: compaction applied, every call closed, images by
 * reference, the provider's order kept (spec/session-record.md B.5, B.6).
 */
export const modelMessages = (view: View): ModelMessage[] => {
  const { floor, summaries } = contextOf(view)
  const messages = messagesAfter(view, floor)
  const calls = { ...callsOf(messages), find: (id: string) => findCall(view, id) }
  return [
    ...summaries.flatMap(({ message }) => summarised(message)),
    ...messages.flatMap((message) => told(message, calls)),
  ]
}
