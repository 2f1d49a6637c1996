import { mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { localSettings } from '../../../infra/local/settings.ts'
import { temporaryFolder } from '../../repositories.ts'

const project = temporaryFolder()
const homeOf = (env: NodeJS.ProcessEnv, folder = project): string => localSettings(env, folder).home

describe('the data folder', () => {
  test.each([
    ['nothing is said', {}, join(homedir(), '.local/state/gatehouse')],
    ['a state folder is named', { XDG_STATE_HOME: '/srv/state' }, '/srv/state/gatehouse'],
    [
      'a state folder is named by no whole path',
      { XDG_STATE_HOME: 'state' },
      join(homedir(), '.local/state/gatehouse'),
    ],
    ['it is named itself', { GATEHOUSE_HOME: '/srv/g', XDG_STATE_HOME: '/srv/state' }, '/srv/g'],
  ])('when %s', (_, env, expected) => expect(homeOf(env)).toBe(expected))

  test('one at the old place is never passed over: moved or named, it goes on', () => {
    const old = temporaryFolder()
    const before = join(old, '.gatehouse')
    mkdirSync(before)
    expect(homeOf({ XDG_STATE_HOME: '/srv' }, old)).toBe('/srv/gatehouse')
    writeFileSync(join(before, 'admin-token'), '')
    const start = () => homeOf({ XDG_STATE_HOME: '/srv' }, old)
    expect(start).toThrow(`mv '${before}' '/srv/gatehouse'`)
    expect(start).toThrow(`GATEHOUSE_HOME='${before}' npm start`)
    expect(homeOf({ GATEHOUSE_HOME: before }, old)).toBe(before)
  })
})
