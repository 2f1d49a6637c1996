import { z } from 'zod'
import { passedBy } from '../session/advance.ts'
import { type StepKind, stepSchema, steps } from '../session/states.ts'
import { helperStates } from './definition.ts'

/** One run of one step, as a person reads it. Times are RFC 3339; `duration_ms` is null while it goes on. */
export const stepRunSchema = z.object({
  name: z.string(),
  kind: z.enum(['handler', 'worker', 'gate', 'admission', 'wait', 'recovery']),
  entered: z.string(),
  left: z.string().nullable(),
  duration_ms: z.number().int().nullable(),
  outcome: z.enum(['succeeded', 'failed', 'timed_out', 'aborted', 'running']),
  /** How often this step has been entered in this execution, from 1. */
  attempt: z.number().int(),
  note: z.string().nullable(),
  error: z.string().nullable(),
})
export type StepRun = z.infer<typeof stepRunSchema>

/** The members of a Step Functions history event that the history is read from. */
export type MachineEvent = {
  type?: string | undefined
  timestamp?: Date | undefined
  stateEnteredEventDetails?: { name?: string | undefined } | undefined
  stateExitedEventDetails?: { name?: string | undefined; output?: string | undefined } | undefined
  taskFailedEventDetails?: { error?: string | undefined; cause?: string | undefined } | undefined
  taskTimedOutEventDetails?: { error?: string | undefined; cause?: string | undefined } | undefined
}

const outputSchema = z.object({ last: z.object({ note: z.string() }).optional() })

const noteOf = (output: string | undefined): string | null => {
  if (output === undefined) return null
  const parsed = outputSchema.safeParse(JSON.parse(output))
  return (parsed.success && parsed.data.last?.note) || null
}

const kindOf = (name: string): StepKind | 'recovery' | null => {
  const step = stepSchema.safeParse(name)
  if (step.success) return steps[step.data].kind
  return name === helperStates.recover ? 'recovery' : null
}

const problemOf = (event: MachineEvent): string | null => {
  const details = event.taskFailedEventDetails ?? event.taskTimedOutEventDetails
  return details ? [details.error, details.cause].filter(Boolean).join(': ') : null
}

/**
 * The steps of an execution from its events, in order. Helper states without work of their own are left out, and so are
 * steps that were only passed by on the way to where the session is.
 */
export const stepHistory = (events: readonly MachineEvent[]): StepRun[] => {
  let runs: StepRun[] = []
  let open: StepRun | null = null
  const close = (event: MachineEvent, outcome: StepRun['outcome'], patch: Partial<StepRun> = {}) => {
    if (!open) return
    const left = event.timestamp ?? new Date(open.entered)
    Object.assign(open, {
      outcome,
      left: left.toISOString(),
      // The clock may have gone back meanwhile.
      duration_ms: Math.max(0, left.getTime() - Date.parse(open.entered)),
      ...patch,
    })
    open = null
  }
  for (const event of events) {
    const entered = event.stateEnteredEventDetails?.name
    const kind = entered === undefined ? null : kindOf(entered)
    if (entered !== undefined && kind) {
      const attempt = runs.filter((run) => run.name === entered).length + 1
      open = {
        name: entered,
        kind,
        entered: (event.timestamp ?? new Date(0)).toISOString(),
        left: null,
        duration_ms: null,
        outcome: 'running',
        attempt,
        note: null,
        error: null,
      }
      runs.push(open)
    } else if (event.type === 'TaskTimedOut' && open?.kind === 'wait') {
      // A wait that has run its time has done what it was for.
      close(event, 'succeeded')
    } else if (event.type === 'TaskFailed' || event.type === 'TaskTimedOut') {
      close(event, event.type === 'TaskFailed' ? 'failed' : 'timed_out', { error: problemOf(event) })
    } else if (event.stateExitedEventDetails && open && event.stateExitedEventDetails.name === open.name) {
      const note = noteOf(event.stateExitedEventDetails.output)
      if (note === passedBy) runs = runs.filter((run) => run !== open)
      close(event, 'succeeded', { note })
    } else if (
      event.type === 'ExecutionAborted' ||
      event.type === 'ExecutionFailed' ||
      event.type === 'ExecutionTimedOut'
    ) {
      close(
        event,
        event.type === 'ExecutionTimedOut'
          ? 'timed_out'
          : event.type === 'ExecutionAborted'
            ? 'aborted'
            : 'failed',
      )
    }
  }
  return runs
}
