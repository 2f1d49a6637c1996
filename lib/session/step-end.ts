import type { Document } from './document.ts'
import { isTransition } from './lifecycle.ts'
import { type Step, stageAt } from './states.ts'

/** A question dies with the run that asked it; an answered one stays to be read. */
export const withdrawn = (question: Document['question']): Document['question'] =>
  question?.status === 'pending' ? { ...question, status: 'withdrawn' } : question

/** The end of a step, and the counters' reset rules of spec/workflow-state.md C.3. */
export const stepEnd = (
  doc: Document,
  { step, trigger, next }: { step: Step; trigger: string; next: Step },
): Partial<Document> => ({
  step: next,
  stage: stageAt(next, doc.stage),
  question: withdrawn(doc.question),
  ...(isTransition(trigger, doc.stage, next)
    ? {
        infra_failures: 0,
        ...(doc.stage === 'code' && stageAt(next, doc.stage) === 'validate'
          ? {}
          : { consecutive_failures: 0 }),
      }
    : {}),
  ...(trigger === 'preflight_passed' || trigger === 'preflight_waived' ? { preflight_retries: 0 } : {}),
  // What the engine said of its turn has been dealt with; a red that follows is about something else.
  ...(trigger === 'accepted' || trigger === 'red_accepted' ? { last_turn: null } : {}),
  // A nomination is heard once: the evaluation that it led to did not bear it out.
  ...(trigger === 'verify_red' ? { nomination: null } : {}),
  // Who has the setup tried again gives it all its tries.
  ...(trigger === 'evaluation_repeated' ? { infra_failures: 0 } : {}),
  // A launch that no lost run of the same step asked for is an ordinary one.
  ...(next === step ? {} : { checkpoint_resumes: 0 }),
})
