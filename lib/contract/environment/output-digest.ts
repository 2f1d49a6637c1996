import { hash } from 'node:crypto'

/** What differs between two runs that print the same, and what stands in its place; the order counts. */
const variable: readonly (readonly [RegExp, string])[] = [
  [/\r\n/g, '\n'],
  // Dates and times of day.
  [/\b\d{4}-\d\d-\d\d(?:[T _]\d\d[:_]\d\d[:_]\d\d(?:[.,_]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?/g, '<time>'],
  [/\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b/g, '<time>'],
  // Paths of temporary folders, wherever they are.
  [/(?:\/private)?\/(?:var\/)?tmp\/[^\s:'"`)\]}>,;]+/g, '<path>'],
  [/\/var\/folders\/[^\s:'"`)\]}>,;]+/g, '<path>'],
  // Ids and addresses in hex: only with a letter and a digit, so that no count is one.
  [/\b0x[0-9a-f]{6,}\b/gi, '<id>'],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, '<id>'],
  [/\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b/gi, '<id>'],
  // Durations, with the word that tells them from counts.
  [/\b\d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|secs?|seconds?|mins?|minutes?|[smh])\b/g, '<duration>'],
  [/\b((?:real|user|sys|time|duration|duration_ms|elapsed|took)[\s:=]+)\d+(?:[.,]\d+)?/gi, '$1<duration>'],
]

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Where a run took place: the tree, and the folder below which all else is that it was given. */
export type RunPlace = { tree: string; root?: string | undefined }

/**
 * A failing run's output without what tells two equal runs apart: times, durations, temporary paths, hex ids, and the
 * place of the run. Everything else is kept to the byte.
 */
export const normalisedOutput = (output: string, { tree, root }: RunPlace): string => {
  const inTree = output.replaceAll(tree, '<tree>')
  const placed = root ? inTree.replace(new RegExp(`${escaped(root)}[^\\s:'"]*`, 'g'), '<path>') : inTree
  return variable.reduce((text, [form, instead]) => text.replace(form, instead), placed)
}

/** SHA-256 of the normalised output, in hex. */
export const outputDigest = (output: string, place: RunPlace): string =>
  hash('sha256', normalisedOutput(output, place))
