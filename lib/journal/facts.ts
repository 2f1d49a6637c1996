import { z } from 'zod'
import { type AgentFact, agentFactSchema, isAgentFactType } from './agent/records.ts'
import { type EventFact, eventFactSchema } from './event-facts.ts'
import { type LifecycleFact, lifecycleFactSchema } from './lifecycle-facts.ts'

/**
 * Facts that a replay needs: those of the session's life, and those of the agent at work in it. An unknown one stops a
 * replay; its data is all that the fold may read.
 */
export const recordFactSchema = z.discriminatedUnion('type', [
  ...lifecycleFactSchema.options,
  ...agentFactSchema.options,
])
export type RecordFact = LifecycleFact | AgentFact

/** A fact before it has its place in a journal. */
export type Fact = RecordFact | EventFact
export const factSchema = z.discriminatedUnion('type', [
  ...recordFactSchema.options,
  ...eventFactSchema.options,
])

const types: ReadonlySet<string> = new Set(factSchema.options.map((option) => option.shape.type.value))
export const isFactType = (type: string): boolean => types.has(type)

const typesOf = (options: readonly { shape: { type: z.ZodLiteral<string> } }[]): ReadonlySet<string> =>
  new Set(options.map((option) => option.shape.type.value))

const lifecycleTypes = typesOf(lifecycleFactSchema.options)
export const isLifecycle = (fact: Fact): fact is LifecycleFact => lifecycleTypes.has(fact.type)
export const isAgentFact = (fact: Fact): fact is AgentFact => isAgentFactType(fact.type)
export const isRecord = (fact: Fact): fact is RecordFact => isLifecycle(fact) || isAgentFact(fact)
