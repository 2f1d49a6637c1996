import { dirname } from 'node:path/posix'

/**
 * Whether a link leads out of the tree that it lies in, or into git's own folder. A `..` behind a name counts as out: the
 * name may be a link itself, so where the two lead to is not to be read off them.
 */
export const leadsOut = (path: string, target: string): boolean => {
  if (target === '' || target.startsWith('/') || /^[A-Za-z]:|\\/.test(target)) return true
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  const up = parts.findIndex((part) => part !== '..')
  const ups = up < 0 ? parts.length : up
  const folder = dirname(path)
  const depth = folder === '.' ? 0 : folder.split('/').length
  const names = parts.slice(ups)
  return ups > depth || names.includes('..') || names.some((name) => name.toLowerCase() === '.git')
}
