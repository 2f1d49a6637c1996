import { isNpmRegistrySetting, isPipRegistrySetting } from './user-surroundings.ts'

type Line = { key: string | null; section: string | null; text: string }

/** The lines of an INI file, each with the key that it belongs to; an indented line goes on with the one before. */
const linesOf = (text: string, goesOn: boolean): Line[] => {
  const lines: Line[] = []
  let section: string | null = null
  let key: string | null = null
  for (const line of text.split(/\r?\n/)) {
    const trimmed = line.trim()
    if (trimmed === '' || trimmed.startsWith('#') || trimmed.startsWith(';')) continue
    const header = /^\[([^\]]+)\]$/.exec(trimmed)
    if (header && !trimmed.includes('=')) {
      section = header[1] ?? null
      key = null
      lines.push({ key, section, text: trimmed })
    } else if (goesOn && /^\s/.test(line) && key !== null) {
      lines.push({ key, section, text: line })
    } else {
      key = (/^([^=]+?)\s*=/.exec(trimmed)?.[1] ?? trimmed).replace(/^["'](.*)["']$/, '$1')
      lines.push({ key, section, text: trimmed })
    }
  }
  return lines
}

/** A path below the user's home is meant there, whatever home its reader has. */
const fixed = (text: string, userHome: string): string =>
  text.replace(/\$\{HOME\}/g, userHome).replace(/=(\s*)~\//, `=$1${userHome}/`)

const joined = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

/** The part of an `.npmrc` that says how to reach registries. Pure. */
export const npmRegistrySettings = (text: string, userHome: string): string =>
  joined(
    linesOf(text, false)
      .filter(({ key, section }) => section === null && key !== null && isNpmRegistrySetting(key))
      .map((line) => fixed(line.text, userHome)),
  )

/** The part of a `pip.conf` that says how to reach indexes. Pure. */
export const pipRegistrySettings = (text: string, userHome: string): string =>
  joined(
    linesOf(text, true)
      .filter(({ key, section }) => section !== null && (key === null || isPipRegistrySetting(key)))
      .map((line) => fixed(line.text, userHome)),
  )
