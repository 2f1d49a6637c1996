import { expect, test } from 'vitest'
import { isError } from '../../../lib/errors.ts'
import { parseRepository } from '../../../lib/workspace/repository-address.ts'

test.each([
  ['https://github.com/acme/shop.git', 'remote', 'https://github.com/acme/shop.git'],
  ['ssh://git@github.com:22/acme/shop', 'remote', 'ssh://git@github.com:22/acme/shop'],
  ['/srv/git/shop', 'local', '/srv/git/shop'],
  ['/srv/git/shop/', 'local', '/srv/git/shop'],
  ['/srv/git/../shop', 'local', '/srv/shop'],
  ['file:///srv/git/my%20shop', 'local', '/srv/git/my shop'],
])('%s is accepted', (address, kind, url) => {
  expect(parseRepository(address, { allowLocal: true })).toEqual({ kind, url, display: url })
})

test.each([
  '',
  ' https://github.com/a/b',
  'http://github.com/a/b',
  'git://github.com/a/b',
  'git@github.com:a/b',
  'host:path',
  './shop',
  'shop',
  '../shop',
  'ext::sh -c id',
  'fd::17',
  '-x',
  '--upload-pack=id',
  'https://user:secret@github.com/a/b',
  'https://token@github.com/a/b',
  'ssh://git:secret@github.com/a/b',
  'ssh://-oProxyCommand=id/x',
  'ssh://-oProxyCommand=id@host/x',
  'ssh://%2doProxyCommand=id@host/x',
  'https://github.com',
  'https://github.com/a/b?x=1',
  'https://github.com/a/b#main',
  'https://',
  'file://host/srv/git',
  'file:///srv/%00',
  'file:///srv/a%2Fb',
  'file:///srv/a%0Ab',
  '/srv/a\nb',
  '/srv/a\0b',
  'https://github.com/a\n/b',
])('%j is refused in words', (address) => {
  let caught: unknown
  try {
    parseRepository(address, { allowLocal: true })
  } catch (error) {
    caught = error
  }
  expect(isError(caught, 'repository_refused')).toBe(true)
  expect(String(caught)).not.toContain('secret')
})

test.each(['/srv/git/shop', 'file:///srv/git/shop'])(
  '%s is refused where paths are not allowed',
  (address) => {
    expect(() => parseRepository(address, { allowLocal: false })).toThrow(/on this machine/)
  },
)
