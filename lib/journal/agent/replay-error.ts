/** Why a record is refused (spec/session-record.md B.6); the names inside say which entity, reference or transition. */
export type ReplayProblem =
  | { readonly kind: 'EmptyLog' | 'InvalidCreation' | 'SequenceOverflow' }
  | { readonly kind: 'SessionMismatch'; readonly expected: string; readonly actual: string }
  | { readonly kind: 'SequenceMismatch'; readonly expected: number; readonly actual: number }
  | { readonly kind: 'DuplicateRecord'; readonly record_id: string }
  | { readonly kind: 'DuplicateEntity'; readonly entity: string }
  | { readonly kind: 'InvalidReference'; readonly reference: string }
  | { readonly kind: 'InvalidTransition'; readonly transition: string }

const detailOf = ({ kind, ...rest }: ReplayProblem): string =>
  [kind, ...Object.entries(rest).map(([name, value]) => `${name} ${value}`)].join(', ')

/** Thrown when a record can't follow a state. The state is then exactly what it was. */
export class AgentReplayError extends Error {
  readonly problem: ReplayProblem
  constructor(problem: ReplayProblem) {
    super(detailOf(problem))
    this.name = 'AgentReplayError'
    this.problem = problem
  }
}

export const refuse = (problem: ReplayProblem): never => {
  throw new AgentReplayError(problem)
}
export const duplicateEntity = (entity: string): never => refuse({ kind: 'DuplicateEntity', entity })
export const invalidReference = (reference: string): never => refuse({ kind: 'InvalidReference', reference })
export const invalidTransition = (transition: string): never =>
  refuse({ kind: 'InvalidTransition', transition })
