import type { AskOutcome } from '../../lib/engine/tools.ts'
import { newId } from '../../lib/ids.ts'
import type { QuestionAnswer } from '../../lib/session/protocol.ts'
import type { Client } from './client.ts'
import type { ToolsOptions } from './tools.ts'
import { Refused } from './transport.ts'

type Asked = { requestId: string; at: number }

const outcomeOf = ({ status, answer }: QuestionAnswer, waitedMs: number): AskOutcome => {
  switch (status) {
    case 'answered':
      return { kind: 'answered', text: answer ?? '' }
    case 'expired':
      return { kind: 'expired', waited_secs: Math.round(waitedMs / 1000) }
    case 'withdrawn':
    case 'pending':
      return { kind: 'refused', reason: `the question is ${status}` }
  }
}

/**
 * Puts one run's questions to people and waits for what becomes of them (spec/coder-session.md 4.4). A question that its
 * engine no longer waits for stays open; the same words again take it up instead of asking twice.
 */
export const createAsk = (
  client: Pick<Client, 'ask' | 'question'>,
  now: () => number,
): ToolsOptions['ask'] => {
  const open = new Map<string, Asked>()
  return async (prompt, signal) => {
    const { requestId, at } = open.get(prompt) ?? { requestId: newId('req'), at: now() }
    open.set(prompt, { requestId, at })
    try {
      let question = await client.ask(requestId, prompt, signal)
      while (question.status === 'pending') question = await client.question(requestId, signal)
      open.delete(prompt)
      return outcomeOf(question, now() - at)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      open.delete(prompt)
      return { kind: 'refused', reason: error.message }
    }
  }
}
