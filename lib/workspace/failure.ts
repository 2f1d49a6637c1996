/** Why a repository or a base could not be used; a fact about the user's side, not an error of ours. */
export type RepositoryProblem =
  | 'not_a_repository'
  | 'unreachable'
  | 'authentication'
  | 'no_commits'
  | 'base_not_found'

/** Why a delivery did not happen; nothing was written when one is returned. */
export type DeliveryProblem =
  | 'branch_exists'
  | 'ref_clash'
  | 'base_moved'
  | 'rejected'
  | 'authentication'
  | 'unreachable'
  | 'not_a_repository'

/** An expected failure: `problem` is for programs, `detail` a sentence for people. */
export type Failure<Problem extends string> = { ok: false; problem: Problem; detail: string }

export const failure = <Problem extends string>(problem: Problem, detail: string): Failure<Problem> => ({
  ok: false,
  problem,
  detail,
})

/** Thrown when a run's own files are not what it left there: a fault of the worker's surroundings, never a verdict. */
export class WorkspaceError extends Error {
  readonly problem: 'checkpoint_damaged' | 'worktree_replaced' | 'worktree_moved' | 'folder_not_ours'

  constructor(problem: WorkspaceError['problem'], detail: string) {
    super(detail)
    this.name = 'WorkspaceError'
    this.problem = problem
  }
}
