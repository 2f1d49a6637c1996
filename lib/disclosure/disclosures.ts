import { named } from '../contract/overlap.ts'
import type { ChangedPath } from '../workspace/changes.ts'
import type { Disclosure, DisclosureKind } from './kinds.ts'
import { leadsOut } from './links.ts'

/** What is known of a change beyond its list of paths. */
export type Known = {
  /** Changed paths that tell the tools of the contract what to do. */
  instructions: readonly string[]
  /** New paths that stand before a module of the same name. */
  shadows: readonly string[]
  /** Where the changed links point to. */
  targets: ReadonlyMap<string, string>
  /** Paths of which a line holds marks that show it in another order. */
  reordered: readonly string[]
}

const texts: Record<DisclosureKind, string> = {
  check_configuration: 'The tools of the contract’s own checks read what to do from files that this changes',
  shadowed_module: 'New files take the place of a library’s modules of the same name',
  outside_link: 'Links lead out of the tree',
  new_executable: 'Files become executable',
  submodule: 'Submodules change: what they hold is not part of this review',
  git_attributes: 'What git does with files on their way in and out changes',
  reordered_text: 'Lines hold marks that show them in another order than programs read them',
}

const isNow = (mode: string) => (change: ChangedPath) => change.new_mode === mode && change.old_mode !== mode

const isNamed = (name: RegExp) => (change: ChangedPath) =>
  name.test(change.path) || (change.old_path !== null && name.test(change.old_path))

/**
 * All that a reviewer is told of a change beside the patch, a sentence for each kind. A change of which anything is
 * disclosed is not shipped by itself (`shipsByItself`): a person looks first.
 */
export const disclosuresOf = (changes: readonly ChangedPath[], known: Known): Disclosure[] => {
  const pathsOf = (holds: (change: ChangedPath) => boolean) => changes.filter(holds).map(({ path }) => path)
  const links = pathsOf(
    ({ path, new_mode }) => new_mode === '120000' && leadsOut(path, known.targets.get(path) ?? '/'),
  )
  return [
    ...disclosed('check_configuration', known.instructions),
    ...disclosed('shadowed_module', known.shadows),
    ...disclosed('outside_link', links, (path) => `${path} → ${known.targets.get(path) ?? 'unknown'}`),
    ...disclosed('new_executable', pathsOf(isNow('100755'))),
    ...disclosed(
      'submodule',
      pathsOf(
        (change) =>
          [change.old_mode, change.new_mode].includes('160000') || isNamed(/(^|\/)\.gitmodules$/i)(change),
      ),
    ),
    ...disclosed('git_attributes', pathsOf(isNamed(/(^|\/)(\.gitattributes|\.lfsconfig)$/i))),
    ...disclosed(
      'reordered_text',
      pathsOf(({ path, status }) => status !== 'deleted' && known.reordered.includes(path)),
    ),
  ]
}

const disclosed = (
  kind: DisclosureKind,
  paths: readonly string[],
  show = (path: string): string => path,
): Disclosure[] =>
  paths.length === 0 ? [] : [{ kind, paths: [...paths], text: `${texts[kind]}: ${named(paths.map(show))}.` }]
