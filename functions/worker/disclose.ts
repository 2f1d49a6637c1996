import { contractOverlap, overlapDisclosure } from '../../lib/contract/overlap.ts'
import type { Contract } from '../../lib/contract/schema.ts'
import { declaredModules, declaringFiles, isRequirements } from '../../lib/disclosure/declared-python.ts'
import { disclosuresOf } from '../../lib/disclosure/disclosures.ts'
import { searchedFolders, shadowing } from '../../lib/disclosure/shadows.ts'
import { limits } from '../../lib/limits.ts'
import type { ReviewBody } from '../../lib/session/protocol.ts'
import type { ChangedPath } from '../../lib/workspace/changes.ts'
import type { TreeFiles } from '../../lib/workspace/tree-files.ts'
import type { Workspace } from '../../lib/workspace/workspace.ts'

/** Reads each file once, however many checks come upon it. */
const readOnce = (base: TreeFiles) => {
  const known = new Map<string, Promise<string | null>>()
  return (path: string): Promise<string | null> => {
    const text = known.get(path) ?? base.text(path, limits.readForReview)
    known.set(path, text)
    return text
  }
}

/** What is declared at the base: a change can't talk itself out of it. */
const declaredAt = async (base: TreeFiles): Promise<Set<string>> => {
  const wanted = [...declaringFiles, ...[...base.paths()].filter(isRequirements)]
  const texts = new Map<string, string>()
  for (const path of wanted) {
    const text = await base.text(path, limits.readForReview)
    if (text !== null) texts.set(path, text)
  }
  return declaredModules(texts)
}

/** What a reviewer is told of a commit beside its patch. */
export const disclose = async (
  workspace: Workspace,
  contract: Contract,
  commit: string,
  changes: readonly ChangedPath[],
): Promise<Pick<ReviewBody, 'contract_overlap' | 'overlap_disclosure' | 'disclosures'>> => {
  const [base, result, reordered] = await Promise.all([
    workspace.files(workspace.base),
    workspace.files(commit),
    workspace.reorderedPaths(commit),
  ])
  const touched = changes.flatMap(({ path, old_path }) => (old_path === null ? [path] : [path, old_path]))
  const [{ overlap, instructions }, declared, targets] = await Promise.all([
    contractOverlap(contract, touched, readOnce(base)),
    declaredAt(base),
    result.targets(changes.map(({ path }) => path)),
  ])
  const searched = searchedFolders(contract)
  const shadows = shadowing(changes, { declared, searched, has: result.has })
  return {
    contract_overlap: overlap,
    overlap_disclosure: overlapDisclosure(overlap),
    disclosures: disclosuresOf(changes, { instructions, shadows, targets, reordered }),
  }
}
