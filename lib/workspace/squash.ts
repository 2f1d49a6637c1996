import { commitMessage } from './commit-message.ts'
import { gitWord } from './git.ts'
import { onObjects, type RunStart } from './run-folder.ts'

export type SquashInput = { tree: string; intent: string; sessionId: string; date: Date }

/** Writes exactly one commit of a tree on the base. The same input gives the same commit, on any machine. */
export const squash = (run: RunStart, input: SquashInput): Promise<string> => {
  const date = `@${Math.floor(input.date.getTime() / 1000)} +0000`
  return gitWord(['commit-tree', '-p', run.base, input.tree], {
    ...onObjects(run),
    input: commitMessage(input.intent, input.sessionId),
    env: { GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date },
  })
}
