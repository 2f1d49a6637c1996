import { limits } from '../../limits.ts'
import { firstOf } from '../../text/shorten.ts'
import { oneLine } from '../../text/visible.ts'

/** Lines that tell of what surrounds a check more often than of the work, as tools and systems print them. */
const lines: readonly RegExp[] = [
  // A program that a shell, env or make did not find, or may not run.
  /^\S+: (?:line )?\d+: (?:exec: )?\S+: (?:command )?not found$/,
  /^\S+: command not found(?:: \S+)?$/,
  /^\S*(?:env|make(?:\[\d+\])?): ['‘]?[^\s:]+['’]?: No such file or directory$/,
  /^\S+: (?:line )?\d+: \S+: (?:No such file or directory|cannot execute: .*|Permission denied)$/,
  /\bspawn(?:Sync)? \S+ (?:ENOENT|EACCES)\b/,
  /\bFileNotFoundError: \[Errno 2\] No such file or directory: '[\w.+-]+'$/,
  /\bexec: "[^"]+": executable file not found in \$PATH/,
  // A library of the system.
  /error while loading shared libraries:/,
  /cannot open shared object file/,
  /^dyld(?:\[\d+\])?: Library not loaded:/,
  /version `\w+_[\d.]+' not found/,
  /\blinker `\S+` not found/,
  /\bNo such built-in module: /,
  // Rights and room.
  /\bE(?:ACCES|PERM|ROFS|NOSPC|MFILE): /,
  /\bNo space left on device\b/,
  // The network.
  /\bgetaddrinfo (?:ENOTFOUND|EAI_AGAIN)\b/,
  /\bno such host\b/,
  /\bCould not resolve host\b/,
  /\b(?:Temporary failure in name resolution|Name or service not known)\b/,
  // What a tool was to run, behind something that hides its exit code.
  /^npm (?:error|ERR!) (?:Missing script: |npx canceled due to missing packages|code E(?:404|NOTCACHED))/,
  /^npm (?:error|ERR!) enoent Could not read package\.json/,
  /^make(?:\[\d+\])?: \*\*\* No (?:rule to make target|targets specified and no makefile)/,
  /^\S*python[\d.]*: (?:No module named |can't open file )/,
  /^\S*sh: 0: cannot open \S+: No such file$/,
  /^error: (?:no such command: |could not find `Cargo\.toml`)/,
  /^ERROR: file or directory not found: /,
  /^No test files found\b/,
  /\berror TS(?:5058|5083|18003): /,
]

/** Lines that name a module which was not found, in their group: not the work's own where the tree has none of that name. */
const modules: readonly RegExp[] = [
  /\bCannot find (?:module|package) ['"]([^'"]+)['"]/,
  /\bNo module named '?([\w.]+)'?$/,
  /\bcannot load such file -- (\S+)/,
  /\bCan't locate (\S+) in @INC/,
]

/** Names that are told by a path or by an alias of the project. */
const isLocal = (name: string): boolean => /^(?:\.|\/|~|#|@\/)/.test(name)

const raises = (line: string, isOwn: (module: string) => boolean): boolean => {
  if (lines.some((form) => form.test(line))) return true
  const name = modules.map((form) => form.exec(line)?.[1]).find((found) => found !== undefined)
  return name !== undefined && !isLocal(name) && !isOwn(name)
}

const colours = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, 'g')

/**
 * The first line of a failing check's output that makes one think of the check's environment rather than of the work; null
 * when there is none. It says nothing for sure and changes no verdict: an engine can print whatever it likes. `isOwn` says
 * whether the tree itself has a module of a name.
 */
export const suspicionIn = (output: string, isOwn: (module: string) => boolean): string | null => {
  const found = output
    .replace(colours, '')
    .split(/\r?\n/)
    .map((line) => line.trim())
    .find((line) => raises(line, isOwn))
  return found === undefined ? null : firstOf(oneLine(found), limits.suspicion)
}
