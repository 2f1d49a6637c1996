/** The files of a repository, as far as its top levels; paths are relative with forward slashes. */
export type RepositoryFiles = {
  has(path: string): boolean
  /** A file's text; null when there is none. */
  read(path: string): string | null
  list(): readonly string[]
}

/** What one ecosystem declares: its checks, what a fresh tree needs first, and the files that say so. */
export type Declared = { commands: string[]; setup: string[]; sources: string[] }

export type Detector = { looksFor: string; find(files: RepositoryFiles): Declared | null }

/** The first of some paths that exists. */
export const firstOf = (files: RepositoryFiles, ...paths: string[]): string | null =>
  paths.find((path) => files.has(path)) ?? null
