import { z } from 'zod'
import { checkResultSchema } from '../contract/schema.ts'
import { stepSchema } from '../session/states.ts'
import { factSchema as fact } from './fact.ts'

/** Facts for people to watch (spec/coder-session.md 16); a replay skips them, known or not. */
export const eventFactSchema = z.discriminatedUnion('type', [
  fact('engine_selected', z.strictObject({ engine: z.string(), reason: z.string() })),
  fact('engine_fallback', z.strictObject({ from: z.string(), to: z.string(), reason: z.string() })),
  fact('model_fallback', z.strictObject({ from: z.string(), to: z.string(), reason: z.string() })),
  fact('inference_waiting', z.strictObject({ elapsed_secs: z.number().min(0) })),
  fact(
    'inference_retry',
    z.strictObject({
      model: z.string(),
      attempt: z.number().int().min(1),
      reason: z.string(),
      backoff_ms: z.number().int().min(0),
    }),
  ),
  /** A sign-in is missing; `wait_secs` says how long it is waited for, null that it is not. */
  fact('auth_required', z.strictObject({ message: z.string(), wait_secs: z.number().min(0).nullable() })),
  fact('plan_text', z.strictObject({ text: z.string() })),
  fact('tool_call', z.strictObject({ tool: z.string(), params_preview: z.string() })),
  fact('tool_result', z.strictObject({ tool: z.string(), ok: z.boolean(), preview: z.string() })),
  /** Something that an engine of another make told of, as it told it. */
  fact('external_event', z.strictObject({ raw: z.record(z.string(), z.unknown()) })),
  fact(
    'execution_started',
    z.strictObject({ name: z.string(), attempt: z.number().int(), at_step: stepSchema }),
  ),
  /** A worker took the session's lease; whoever had it before is refused from here on. */
  fact('lease_taken', z.strictObject({ worker_id: z.string(), epoch: z.number().int() })),
  fact('setup_started', z.strictObject({ command: z.string() })),
  fact(
    'setup_completed',
    z.strictObject({
      command: z.string(),
      ok: z.boolean(),
      output_head: z.string(),
      output_tail: z.string(),
      artifact: z.string(),
    }),
  ),
  /** Beside or above the tree stood what nothing of ours put there; it was removed before the next command ran. */
  fact('surroundings_cleared', z.strictObject({ paths: z.array(z.string()) })),
  fact('check_started', z.strictObject({ name: z.string() })),
  fact('check_completed', z.strictObject({ result: checkResultSchema })),
  fact('engine_started', z.strictObject({ engine: z.string(), iteration: z.number().int() })),
  fact(
    'engine_output',
    z.strictObject({
      iteration: z.number().int(),
      text: z.string(),
      omitted_bytes: z.number().int(),
    }),
  ),
  fact('contract_revision_rejected', z.strictObject({ request: z.string(), reason: z.string() })),
  fact(
    'budget_exhausted',
    z.strictObject({ reason: z.string(), elapsed_secs: z.number().nullable(), iterations: z.number().int() }),
  ),
  /** The sweep found something left half-done, and mended it. */
  fact('repaired', z.strictObject({ what: z.string(), detail: z.string() })),
  fact('compute_stopped', z.strictObject({ compute_id: z.string(), reason: z.string() })),
  fact('error', z.strictObject({ message: z.string() })),
])

export type EventFact = z.infer<typeof eventFactSchema>
