import { z } from 'zod'
import type { Entry } from '../entry.ts'
import { ReplayError } from '../fold.ts'
import { type AgentRecord, readPlaced } from './envelope.ts'
import type { JsonObject } from './json.ts'
import { creationSchema, isAgentFactType } from './records.ts'

const createdSchema = z.looseObject({
  engine: z.string(),
  labels: z.record(z.string(), z.string()),
  agent: creationSchema.shape.data.optional(),
})

/**
 * The agent's view of Gatehouse's own first record: the one it was imported with; else the engine is the profile, and
 * labels are metadata.
 */
export const creationOf = (data: unknown): JsonObject => {
  const { engine, labels, agent } = createdSchema.parse(data)
  if (agent) return agent
  const metadata = Object.keys(labels).length === 0 ? {} : { metadata: { 'dev.gatehouse.labels': labels } }
  return { profile_id: engine, ...metadata }
}

/**
 * The agent's record that a journal entry is; null for one of the session's lifecycle and for an event. Throws
 * ReplayError for a record that is not of its type.
 */
export const agentRecordOf = (entry: Entry): AgentRecord | null => {
  const { sequence, id, session_id, branch, type, time, data } = entry
  const { causation_id, correlation_id, metadata } = entry
  const isCreation = type === 'session_created'
  if (entry.kind === 'event' || !(isCreation || isAgentFactType(type))) return null
  const place = {
    ...{ sequence, id, session_id, branch, time },
    ...(causation_id === undefined ? {} : { causation_id }),
    ...(correlation_id === undefined ? {} : { correlation_id }),
    ...(metadata === undefined ? {} : { metadata }),
  }
  const reading = readPlaced(place, { type, data: isCreation ? creationOf(data) : data })
  if (reading.ok) return reading.record
  const [issue] = reading.issues
  const problem = `${issue?.path.join('.')}: ${issue?.message}`
  throw new ReplayError('invalid_record', sequence, `record ${type} is not understood, ${problem}`)
}
