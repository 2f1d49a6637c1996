/**
 * A tool that runs something else. `command` is the form of its call, whose group holds the words that may name what it
 * runs; `missing` finds in its whole output the name of what is not there.
 */
export type Runner = { command: RegExp; exitCode: number; missing: (output: string) => string | null }

const firstGroup =
  (...forms: readonly RegExp[]) =>
  (output: string): string | null =>
    forms.map((form) => form.exec(output)?.[1]).find((name) => name !== undefined) ?? null

/** npm's own lines and nothing else: what a script prints stands below the script's name. */
const npmAlone =
  (...forms: readonly RegExp[]) =>
  (output: string): string | null =>
    output
      .split('\n')
      .every((line) => line.trim() === '' || /^npm (?:error|ERR!|warn|WARN|notice)/.test(line))
      ? firstGroup(...forms)(output.replaceAll('%2f', '/'))
      : null

/** The tools whose words are beyond doubt; samples of each are in `test/unit/contract/environment`. */
export const runners: readonly Runner[] = [
  {
    command: /^\S*python[\d.]*\s+-m\s+([\w.]+)(?:\s|$)/,
    exitCode: 1,
    missing: firstGroup(/^\S*python[\d.]*: No module named (\S+)$/),
  },
  {
    command: /^\S*python[\d.]*\s+([^\s-]\S*)(?:\s|$)/,
    exitCode: 2,
    missing: firstGroup(/^\S*python[\d.]*: can't open file '(.*)': \[Errno 2\] No such file or directory$/),
  },
  {
    // The loader's own trace, and nobody required the file.
    command: /^(?:\S*\/)?node\s+([^\s-]\S*)(?:\s|$)/,
    exitCode: 1,
    missing: (output) =>
      output.startsWith('node:internal/modules/') && output.includes('requireStack: []')
        ? firstGroup(/^Error: Cannot find module '(.*)'$/m)(output)
        : null,
  },
  {
    command: /^(?:\S*\/)?node\s+--test\s+([^\s-]\S*)$/,
    exitCode: 1,
    missing: firstGroup(/^Could not find '(.*)'$/),
  },
  {
    command: /^(?:\S*\/)?(?:da)?sh\s+([^\s-]\S*)(?:\s|$)/,
    exitCode: 2,
    missing: firstGroup(/^\S*sh: 0: cannot open (\S+): No such file$/),
  },
  {
    command: /^(?:\S*\/)?npm\s+(?:(?:run|run-script)\s+([^\s-]\S*)|(?:test|start)(?=\s|$))/,
    exitCode: 1,
    missing: npmAlone(/^npm (?:error|ERR!) Missing script: "(.*)"$/m),
  },
  {
    command: /^(?:\S*\/)?(?:npx|npm\s+exec)\s+(?:-\S*\s+)*([^\s-]\S*)(?:\s|$)/,
    exitCode: 1,
    missing: npmAlone(
      /^npm (?:error|ERR!) npx canceled due to missing packages and no YES option: \["([^"]+)@[^"@]*"\]$/m,
      /^npm (?:error|ERR!) request to https?:\/\/[^/\s]+\/(\S+) failed: cache mode is 'only-if-cached'/m,
      /^npm (?:error|ERR!) 404 Not Found - GET https?:\/\/[^/\s]+\/(\S+)/m,
    ),
  },
  {
    command: /^(?:\S*\/)?g?make\s+(.+)$/,
    exitCode: 2,
    missing: firstGroup(/^g?make: \*\*\* No rule to make target [`'](.*)'\. {2}Stop\.$/),
  },
  {
    command: /^(g?make)$/,
    exitCode: 2,
    missing: firstGroup(/^(g?make): \*\*\* No targets specified and no makefile found\. {2}Stop\.$/),
  },
  {
    command: /^(?:\S*\/)?cargo\s+([^\s-]\S*)(?:\s|$)/,
    exitCode: 101,
    missing: firstGroup(/^error: no such command: `(.*)`\n/),
  },
]
