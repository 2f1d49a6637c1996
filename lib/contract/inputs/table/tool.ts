/** Languages whose tools often start each other. */
export type Ecosystem =
  | 'javascript'
  | 'python'
  | 'rust'
  | 'go'
  | 'native'
  | 'jvm'
  | 'scripting'
  | 'dotnet'
  | 'any'

/** A tool that a check may call, and where it reads what to do. */
export type Tool = {
  /** What it is called as, without folders, versions and `.exe`. */
  names: readonly string[]
  ecosystem: Ecosystem
  /** Files that it reads its instructions from without being told to: gitignore patterns. */
  reads: readonly string[]
  /** Options whose value is such a file. */
  options?: readonly string[]
  /** Files whose text says what other tools it starts. */
  scripts?: readonly string[]
  /** It starts tools of this kind: of all of them, unless one of `scripts` is there to tell. */
  starts?: Ecosystem
}

/** Managers of versions stand before the tools of every language. */
const versionManagers = ['.tool-versions', 'mise.toml', '.mise.toml', '.config/mise/', '.envrc']

/** Files with variables, but for those that are only there to be copied. */
export const variables = ['.env', '.env.*', '!.env.example', '!.env.sample', '!.env.template']

/** Tools of one language, each of which reads `shared` too. */
export const toolsOf = (
  ecosystem: Ecosystem,
  shared: readonly string[],
  tools: readonly Omit<Tool, 'ecosystem'>[],
): Tool[] =>
  tools.map((tool) => ({ ...tool, ecosystem, reads: [...tool.reads, ...shared, ...versionManagers] }))
