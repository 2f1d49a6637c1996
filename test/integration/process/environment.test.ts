import { expect, it } from 'vitest'
import { childEnvironment } from '../../../lib/process/environment.ts'

const environment = (base: NodeJS.ProcessEnv, extra = {}) => childEnvironment(base, extra, '/srv/gatehouse')

it('passes on what commands need and nothing else', () => {
  const passed = {
    ...{ HOME: '/home/a', USER: 'a', LOGNAME: 'a', SHELL: '/bin/sh', LANG: 'C', LC_ALL: 'C', TZ: 'UTC' },
    ...{
      TMPDIR: '/tmp',
      HTTPS_PROXY: 'http://p',
      no_proxy: 'x',
      NODE_EXTRA_CA_CERTS: '/ca',
      GIT_SSL_CAINFO: '/ca',
    },
  }
  const dropped = {
    ...{
      AWS_SECRET_ACCESS_KEY: 's',
      GATEHOUSE_TOKEN: 't',
      npm_config_x: 'y',
      GIT_DIR: '/g',
      NODE_OPTIONS: '--x',
    },
    ...{ GITHUB_TOKEN: 't', ENV: '/x', BASH_ENV: '/x', LD_PRELOAD: '/x', INIT_CWD: '/x' },
  }
  expect(environment({ ...passed, ...dropped, TERM: 'xterm' })).toEqual({
    ...passed,
    ...{ PATH: '/usr/local/bin:/usr/bin:/bin', TERM: 'dumb', CI: 'true' },
  })
})

it.each([
  ['/srv/gatehouse/node_modules/.bin:/usr/bin', '/usr/bin'],
  ['/srv/node_modules/.bin:/node_modules/.bin:/usr/bin', '/usr/bin'],
  ['/srv/gatehouse/node_modules/node/bin:/usr/bin', '/usr/bin'],
  ['/x/node_modules/@npmcli/run-script/lib/node-gyp-bin:/usr/bin', '/usr/bin'],
  ['/home/a/.npm/_npx/0123abcd/node_modules/.bin:/usr/bin', '/usr/bin'],
  ['/srv/other/node_modules/.bin:/usr/bin', '/srv/other/node_modules/.bin:/usr/bin'],
  ['/srv/gatehouse-2/node_modules/.bin:/usr/bin', '/srv/gatehouse-2/node_modules/.bin:/usr/bin'],
  [':.:bin:/usr/bin', '/usr/bin'],
])('PATH %s becomes %s', (given, expected) => {
  expect(environment({ PATH: given }).PATH).toBe(expected)
})

it('extra wins', () => {
  expect(environment({ PATH: '/bin' }, { PATH: '/x', GATEHOUSE_A: '1', CI: 'no' })).toMatchObject({
    ...{ PATH: '/x', GATEHOUSE_A: '1', CI: 'no' },
  })
})
