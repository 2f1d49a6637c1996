import { isAbsolute, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { GatehouseError } from '../errors.ts'

/** A repository address that is accepted: `url` is what git is given, `display` what people are shown. */
export type Repository = { kind: 'remote' | 'local'; url: string; display: string }

const refuse = (reason: string): GatehouseError => new GatehouseError('repository_refused', reason)

const hasControl = (text: string): boolean => /\p{Cc}/u.test(text)

const localRepository = (path: string, allowLocal: boolean): Repository => {
  if (!allowLocal)
    throw refuse('Repositories on this machine are not accepted here; give an https or ssh address.')
  if (hasControl(path)) throw refuse('The path holds a control character.')
  const url = normalize(path).replace(/(.)\/+$/, '$1')
  return { kind: 'local', url, display: url }
}

const fileRepository = (url: URL, allowLocal: boolean): Repository => {
  if (url.host !== '') throw refuse('A file address names no host: file:///path.')
  if (url.search !== '' || url.hash !== '') throw refuse('A file address has no query and no fragment.')
  try {
    return localRepository(fileURLToPath(url), allowLocal)
  } catch (error) {
    if (error instanceof GatehouseError) throw error
    throw refuse('This file address names no path.')
  }
}

const remoteRepository = (address: string, url: URL): Repository => {
  const ssh = url.protocol === 'ssh:'
  if (url.password !== '' || (!ssh && url.username !== ''))
    throw refuse('The address holds credentials; register them for the repository instead.')
  if (url.hostname === '') throw refuse('The address names no host.')
  if (/^(-|%2d)/i.test(url.hostname) || /^(-|%2d)/i.test(url.username))
    throw refuse('The address looks like an option.')
  if (url.pathname === '/' || url.pathname === '')
    throw refuse('The address names no repository on its host.')
  if (url.search !== '' || url.hash !== '') throw refuse('A repository address has no query and no fragment.')
  return { kind: 'remote', url: address, display: address }
}

/**
 * Reads a repository address: `https://`, `ssh://` and, where `allowLocal`, an absolute path or `file://`.
 * Throws `repository_refused` with the reason in words for anything else, credentials inside it included.
 */
export const parseRepository = (address: string, options: { allowLocal: boolean }): Repository => {
  if (address === '') throw refuse('The address is empty.')
  if (hasControl(address)) throw refuse('The address holds a control character.')
  if (address !== address.trim()) throw refuse('The address begins or ends with a space.')
  if (address.startsWith('-')) throw refuse('The address looks like an option.')
  if (isAbsolute(address)) return localRepository(address, options.allowLocal)
  if (/^[a-z0-9+.-]+::/i.test(address))
    throw refuse('Remote helpers are not accepted; give an https or ssh address.')
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase()
  if (scheme === undefined) {
    if (/^[^/]+:/.test(address)) throw refuse('Write an ssh address in full: ssh://git@host/path.')
    throw refuse('Give a full address: https://, ssh:// or an absolute path.')
  }
  if (scheme !== 'https' && scheme !== 'ssh' && scheme !== 'file')
    throw refuse(`${scheme}:// is not accepted; give an https or ssh address.`)
  if (!URL.canParse(address)) throw refuse('The address is malformed.')
  const url = new URL(address)
  return scheme === 'file' ? fileRepository(url, options.allowLocal) : remoteRepository(address, url)
}
