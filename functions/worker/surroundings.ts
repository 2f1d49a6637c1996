import type { Surroundings } from '../../lib/contract/evaluate.ts'
import { limits } from '../../lib/limits.ts'
import { checkEnvironment } from '../../lib/process/check-home.ts'
import { showPath } from '../../lib/workspace/path-text.ts'
import type { Place } from '../../lib/workspace/surroundings/place.ts'
import { WorkerFault, type WorkerSession } from './session.ts'

/** As many paths as a person reads; printable, since an engine may have chosen them. */
const named = (paths: readonly string[]): string[] =>
  paths.slice(0, limits.surroundingsNamed).map((path) => showPath(Buffer.from(path)))

const tellCleared = (session: WorkerSession, paths: readonly string[]): void => {
  if (paths.length > 0)
    session.reporter.event({ type: 'surroundings_cleared', data: { paths: named(paths) } })
}

/** What the commands that judge a tree in this place see, and what is looked at around each of them. */
export const judgedIn = (
  session: WorkerSession,
  place: Place,
): { tree: string; env: Record<string, string>; surroundings: Surroundings } => ({
  tree: place.tree,
  env: checkEnvironment(session.env, {
    ...{ home: place.home, temporary: place.temporary, userHome: session.userHome },
  }),
  surroundings: {
    before: async () => {
      const { removed, foreign } = await place.look()
      tellCleared(session, removed)
      if (foreign.length === 0) return null
      return `Not run: tools that work in the tree would also find what is not part of it. Remove ${named(foreign).join(', ')}.`
    },
    after: place.settle,
  },
})

/** The worktree's place, with a home that only setup and checks wrote in: one that anything else touched is made anew. */
export const worktreePlace = async (session: WorkerSession): Promise<Place> => {
  const { place } = session
  if (place === null) throw new WorkerFault('there is no worktree')
  if (await place.isHomeIntact()) return place
  await place.renewHome()
  session.setUp = false
  tellCleared(session, [place.home])
  return place
}
