const versionFlags = new Set(['--version', '-version', '-v', '-V', 'version', '--help', '-h', 'help'])

/**
 * Whether a command says nothing about the work: only printed text, printed tool versions or a fixed exit 0,
 * be it several of them in a row. A program of the repository's own (a word with a slash) is never a tool
 * here.
 */
export const isNoOp = (command: string): boolean => {
  const parts = command
    .replace(/\s*\d?>>?\s*(?:\/dev\/null|&\d)/g, '')
    .split(/&&|\|\||[;\n|&]/)
    .map((part) => part.trim())
    .filter((part) => part !== '' && !part.startsWith('#'))
  return parts.length > 0 && parts.every(isNoOpPart)
}

const isNoOpPart = (part: string): boolean => {
  const words = part.split(/\s+/)
  const [first = '', second = ''] = words
  if (first === 'true' || first === ':' || first === 'echo' || first === 'printf') return !part.includes('$(')
  if (first === 'exit') return words.length === 1 || second === '0'
  if (first === 'which' || first === 'type' || (first === 'command' && /^-[vV]$/.test(second))) return true
  return !first.includes('/') && words.length <= 3 && versionFlags.has(second)
}
