/** Where a string that starts at `start` ends: just behind its closing quote. */
const endOfString = (text: string, start: number): number => {
  let end = text.indexOf('"', start + 1)
  for (;;) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return end + 1
    end = text.indexOf('"', end + 1)
  }
}

/** An integer has to come out with the same digits. */
const isExact = (token: string): boolean => {
  const value = Number(token)
  if (!Number.isFinite(value)) return false
  return !/^-?\d+$/.test(token) || String(value) === token || token === '-0'
}

/**
 * What of a text that JSON.parse accepts would be lost or changed by it: a key that an object has twice, an integer that
 * no number holds exactly; and nesting deeper than `depth`. Null when there is nothing.
 */
export const lossOf = (text: string, depth: number): string | null => {
  const number = /-?\d[-+.\deE]*/y
  const open: (Set<string> | null)[] = []
  let key = false
  let at = 0
  while (at < text.length) {
    const character = text[at]
    if (character === '"') {
      const end = endOfString(text, at)
      const keys = open.at(-1)
      if (key && keys) {
        const name: unknown = JSON.parse(text.slice(at, end))
        if (typeof name === 'string' && keys.size === keys.add(name).size)
          return `the key ${name} stands twice`
        key = false
      }
      at = end
      continue
    }
    if (character === '{' || character === '[') {
      open.push(character === '{' ? new Set() : null)
      if (open.length > depth) return `nested deeper than ${depth}`
      key = character === '{'
    } else if (character === '}' || character === ']') open.pop()
    else if (character === ',') key = open.at(-1) !== null
    else {
      number.lastIndex = at
      const token = number.exec(text)?.[0]
      if (token !== undefined) {
        if (!isExact(token)) return `the number ${token.slice(0, 40)} can not be kept exactly`
        at += token.length
        continue
      }
    }
    at++
  }
  return null
}
