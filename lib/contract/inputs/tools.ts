import { dotnet, go, native, rust } from './table/compiled.ts'
import { javascript, javascriptBuilds } from './table/javascript.ts'
import { jvm } from './table/jvm.ts'
import { python } from './table/python.ts'
import { runners } from './table/runners.ts'
import { scripting } from './table/scripting.ts'
import type { Ecosystem, Tool } from './table/tool.ts'

/** The whole table. */
export const tools: readonly Tool[] = [
  ...javascript,
  ...javascriptBuilds,
  ...python,
  ...rust,
  ...go,
  ...native,
  ...dotnet,
  ...jvm,
  ...scripting,
  ...runners,
]

const byName = new Map(tools.flatMap((tool) => tool.names.map((name) => [name, tool] as const)))

/** The tool that a word calls: its folders, version, number and file ending are not part of its name. */
export const toolNamed = (word: string): Tool | null => {
  const last = word.slice(word.lastIndexOf('/') + 1)
  const plain = last.replace(/(?!^)@.*$/, '')
  const bare = plain.replace(/\.(?:exe|cmd|bat|[cm]?js|py|sh)$/i, '')
  for (const name of [last, plain, bare, bare.replace(/-?\d[\d.]*$/, '')]) {
    const tool = byName.get(name)
    if (tool) return tool
  }
  return null
}

/** All tools of a language; of every one for `any`. */
export const toolsOfKind = (kind: Ecosystem): readonly Tool[] =>
  kind === 'any' ? tools : tools.filter(({ ecosystem }) => ecosystem === kind)
