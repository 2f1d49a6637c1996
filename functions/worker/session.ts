import { join } from 'node:path'
import { limits } from '../../lib/limits.ts'
import { childEnvironment } from '../../lib/process/environment.ts'
import type { Command } from '../../lib/session/protocol.ts'
import type { Failure, RepositoryProblem } from '../../lib/workspace/failure.ts'
import { fetchMirror, pinBase, pinnedMirror } from '../../lib/workspace/mirror.ts'
import { parseRepository, type Repository } from '../../lib/workspace/repository-address.ts'
import type { Place, Places } from '../../lib/workspace/surroundings/place.ts'
import { type OpenOptions, openTrusted, type Trusted } from '../../lib/workspace/trusted.ts'
import { adoptWorkspace, openWorkspace, type Workspace } from '../../lib/workspace/workspace.ts'
import type { Client } from './client.ts'
import { type HandOver, runName, worktreeName } from './hand-over.ts'
import type { Reporter } from './reporter.ts'

/** What went wrong around the work; the command is reported as a fault and may go well the next time. */
export class WorkerFault extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'WorkerFault'
  }
}

/** One worker's hold on its session: its folders, and the worktree once a command needed it. */
export type WorkerSession = {
  home: string
  /** The folder below which all is that this session's workers and what they start may write. */
  root: string
  /** This launch's private folder, which is above no tree. */
  folder: string
  /** Where this launch's trees stand. */
  places: Places
  workerId: string
  client: Client
  reporter: Reporter
  signal: AbortSignal
  /** Fires some time after `signal`: what is done on the way out ends then. */
  leaving: AbortSignal
  env: Record<string, string>
  /** The home of the user that the worker runs as. */
  userHome: string
  /** What preflight found, for prepare to go on with. */
  base: { mirror: string; commit: string } | null
  workspace: Workspace | null
  /** Where the worktree stands, once there is one. */
  place: Place | null
  /** The tree in which the contract's setup has been run. */
  setUp: boolean
  /** The worktree that the worker before has left; null once it is ours, or given up. */
  left: HandOver | null
}

/** From being told to stop to giving up on saving the work: with the rest of the way out it stays below ten seconds. */
const keepMs = 6_000

/** A signal that fires some milliseconds after another one, and holds up no exit. */
const later = (signal: AbortSignal, ms: number): AbortSignal => {
  const end = new AbortController()
  const begin = () => setTimeout(() => end.abort(new Error('no time is left')), ms).unref()
  signal.addEventListener('abort', begin, { once: true })
  return end.signal
}

export const createSession = (
  start: Omit<WorkerSession, 'base' | 'workspace' | 'place' | 'env' | 'setUp' | 'leaving'>,
): WorkerSession => ({
  ...start,
  leaving: later(start.signal, keepMs),
  env: childEnvironment(process.env, {}, import.meta.dirname),
  base: null,
  workspace: null,
  place: null,
  setUp: false,
})

export const outputFolder = (session: WorkerSession): string => join(session.folder, 'output')

export const repositoryOf = (command: Command): Repository =>
  parseRepository(command.session.repo, { allowLocal: command.allow_local_repositories })

/** Where a session's clock ends, in epoch milliseconds; null before the run has one. */
export const deadlineOf = ({ session }: Command): number | null =>
  session.deadline_at === null ? null : Date.parse(session.deadline_at)

/** The mirror, brought up to date; a repository's own failure is returned, for preflight to name. */
export const mirrorOf = async (
  session: WorkerSession,
  command: Command,
): Promise<string | Failure<RepositoryProblem>> => {
  const mirror = await fetchMirror({
    home: session.home,
    repository: repositoryOf(command),
    signal: session.signal,
  })
  return mirror.ok ? mirror.directory : mirror
}

/** A mirror that holds the session's base: the one in which it is pinned, else one fetched anew. */
const mirrorWith = async (session: WorkerSession, command: Command, base: string): Promise<string> => {
  const pinned = await pinnedMirror({
    home: session.home,
    repository: repositoryOf(command),
    sessionId: command.session.id,
    commit: base,
  })
  if (pinned !== null) return pinned
  const mirror = await mirrorOf(session, command)
  if (typeof mirror !== 'string') throw new WorkerFault(mirror.detail)
  await pinBase(mirror, command.session.id, base)
  return mirror
}

/** What a run is opened with: the base, and the session's saved work where it has some. */
const openingOf = async (
  session: WorkerSession,
  { session: { checkpoint }, bundle: saved }: Command,
  mirror: string,
  base: string,
): Promise<OpenOptions> => {
  const bundle = saved === null ? null : join(session.folder, 'restored.bundle')
  if (saved !== null && bundle !== null) await session.client.download(saved.url, bundle)
  return {
    ...{ run: join(session.folder, runName), mirror, base, signal: session.signal },
    ...(checkpoint ? { checkpoint: { commit: checkpoint.commit, bundle } } : {}),
  }
}

/** A fresh worktree on a base, in a place of its own, with the session's saved work where it has some. */
export const openAt = async (
  session: WorkerSession,
  command: Command,
  mirror: string,
  base: string,
): Promise<Workspace> => {
  const options = await openingOf(session, command, mirror, base)
  const { place, value } = await session.places.open(worktreeName, (tree) =>
    openWorkspace({ ...options, tree }),
  )
  session.place = place
  return value
}

/** The worktree that the worker before has left at the session's checkpoint; null when it is not to be had. */
const adopt = async (
  session: WorkerSession,
  command: Command,
  mirror: string,
  base: string,
): Promise<Workspace | null> => {
  const { left } = session
  session.left = null
  if (left === null || left.checkpoint !== command.session.checkpoint?.id) return null
  const place = await session.places.adopt(worktreeName, left.home)
  if (place === null) return null
  const { checkpoint, ...options } = await openingOf(session, command, mirror, base)
  if (checkpoint === undefined) return null
  try {
    const workspace = await adoptWorkspace({ ...options, tree: place.tree, checkpoint })
    session.place = place
    session.setUp = left.set_up
    // Where this worktree has the last word, nothing around it may be what an engine could have written.
    if (command.session.verify !== 'clean') {
      await place.renewHome()
      session.setUp = false
    }
    return workspace
  } catch (error) {
    if (session.signal.aborted) throw error
    return null
  }
}

const startOf = ({ session: { start_commit } }: Command): string => {
  if (start_commit === null) throw new WorkerFault('the session has no start commit')
  return start_commit
}

/** The worktree at the session's last checkpoint: the one at hand, or a fresh one from the mirror and the bundle. */
export const workspaceOf = async (session: WorkerSession, command: Command): Promise<Workspace> => {
  if (session.workspace) return session.workspace
  const base = startOf(command)
  const mirror = await mirrorWith(session, command, base)
  session.workspace =
    (await adopt(session, command, mirror, base)) ?? (await openAt(session, command, mirror, base))
  return session.workspace
}

/** Our repository at the session's last checkpoint; no file is checked out for it. */
export const trustedOf = async (session: WorkerSession, command: Command): Promise<Trusted> => {
  if (session.workspace) return session.workspace
  const base = startOf(command)
  const mirror = await mirrorWith(session, command, base)
  return openTrusted(await openingOf(session, command, mirror, base))
}

/** The last part of an id: enough to keep names of one session's commands apart. */
export const commandSuffix = (command: Command): string => command.id.slice(-8)

/** How long a child may run when only the session's clock limits it. */
export const timeLeft = (command: Command, now: number, most: number = limits.engineTimeoutMs): number => {
  const deadline = deadlineOf(command)
  return deadline === null ? most : Math.max(0, Math.min(most, deadline - now))
}
