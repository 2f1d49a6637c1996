import { basename, dirname } from 'node:path/posix'
import { wordsOf } from '../contract/inputs/words.ts'
import type { Contract } from '../contract/schema.ts'
import type { ChangedPath } from '../workspace/changes.ts'
import { pythonModules } from './python-modules.ts'

/** Which modules there are to be shadowed, and where Python looks for them. */
export type Modules = {
  /** Import names of the packages that the project declares. */
  declared: ReadonlySet<string>
  /** Folders that the commands of the contract look for modules in. */
  searched: ReadonlySet<string>
  /** Whether the result holds a file. */
  has: (path: string) => boolean
}

/** The folders of a contract's own words: those it changes to, those on a search path, those of the scripts it runs. */
export const searchedFolders = ({ setup, checks }: Contract): Set<string> => {
  const all = [...setup, ...checks.map(({ command }) => command)].map(wordsOf)
  const scripts = all.flatMap(({ paths }) => paths.filter((path) => path.endsWith('.py')).map(dirname))
  return new Set([...all.flatMap(({ files, folders }) => [...files, ...folders]), ...scripts])
}

/**
 * New paths that a program finds before the module of the same name that it asks for: a Python module named as one of the
 * language's own or of a declared package, where Python may look, and anything in a folder of installed packages. Node has
 * no other way: its own modules can't be shadowed.
 */
export const shadowing = (changes: readonly ChangedPath[], modules: Modules): string[] =>
  changes
    .filter(({ status }) => status !== 'deleted')
    .filter((change) => isInstalled(change.path) || (isNew(change) && shadowsModule(change, modules)))
    .map(({ path }) => path)

const isInstalled = (path: string): boolean =>
  /(^|\/)(node_modules|site-packages|dist-packages|__pypackages__)(\/|$)/.test(path)

const isNew = ({ status, old_mode, new_mode }: ChangedPath): boolean =>
  status === 'added' || status === 'renamed' || old_mode !== new_mode

const shadowsModule = (change: ChangedPath, { declared, searched, has }: Modules): boolean => {
  const found = moduleOf(change)
  if (found === null) return false
  if (!pythonModules.has(found.name) && !declared.has(found.name.toLowerCase())) return false
  return !has(`${found.folder}/__init__.py`) || searched.has(found.folder)
}

/** The module that a path is, with the folder that it is found in; null where it is none. */
const moduleOf = ({ path, new_mode }: ChangedPath): { name: string; folder: string } | null => {
  const package_ = /^__init__\.(?:pyi?|pyc)$/.test(basename(path)) ? dirname(path) : null
  if (package_ !== null) return { name: basename(package_), folder: dirname(package_) }
  const name =
    /^(\w+)\.(?:pyi?|pyc)$/.exec(basename(path))?.[1] ??
    /^(\w+)(?:\.[\w-]+)*\.(?:so|pyd)$/.exec(basename(path))?.[1]
  if (name !== undefined) return { name, folder: dirname(path) }
  // A link can be a package whose files lie elsewhere.
  return new_mode === '120000' ? { name: basename(path), folder: dirname(path) } : null
}
