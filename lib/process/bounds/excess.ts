import { limits } from '../../limits.ts'

/** What a run had too much of: its worktree, its output, or of the disk that it shares with others. */
export const excesses = ['tree_too_large', 'output_too_large', 'out_of_room'] as const
export type Excess = (typeof excesses)[number]

/** What a run may take, in bytes: its tree, its output, and what has to stay free on the tree's disk. */
export type Bounds = { tree: number; output: number; free: number }

const size = (bytes: number): string => {
  const megabytes = Math.round(bytes / (1024 * 1024))
  return megabytes >= 1024 ? `${Math.round(megabytes / 1024)} GiB` : `${megabytes} MiB`
}

const { tree, output, free } = limits.run

/** Why a run was ended, with what is meant to be done about it. */
export const excessTexts: Record<Excess, string> = {
  tree_too_large: `its worktree took more than ${size(tree)} of the disk`,
  output_too_large: `it printed more than ${size(output)}`,
  out_of_room: `the disk of its worktree had less than ${size(free)} left`,
}

export const isExcess = (ended: string): ended is Excess => Object.hasOwn(excessTexts, ended)
