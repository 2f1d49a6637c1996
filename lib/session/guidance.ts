import { GatehouseError } from '../errors.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import type { Document } from './document.ts'

/** The fact that guidance was accepted, which says nothing of its use. Throws `invalid_request` when there is too much. */
export const guidance = (document: Document, text: string, actor: Actor): Fact => {
  if (Buffer.byteLength([...document.steering_messages, text].join('')) > limits.guidance) {
    const message = `all guidance of a session may hold ${limits.guidance} bytes`
    throw new GatehouseError('invalid_request', message, { errors: [{ path: 'text', message }] })
  }
  return { type: 'operator_guidance', data: { text, status: 'accepted', by: actor.id } }
}

/** The facts that an engine was given the first `count` messages, by its prompt or its tools; none for those before. */
export const guidanceApplied = (document: Document, count: number, actor: Actor): Fact[] =>
  document.steering_messages
    .slice(document.guidance_applied, count)
    .map((text) => ({ type: 'operator_guidance', data: { text, status: 'applied', by: actor.id } }))
