import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../repositories.ts'
import { until } from './kept.ts'

/** Places at which a session's commands wait until they are let go; `shell` is what a command runs to be one. */
export const stalls = () => {
  const folder = temporaryFolder()
  const hold = (name: string) => join(folder, `${name}.hold`)
  const runs = (name: string) => join(folder, `${name}.runs`)
  const count = (name: string): number =>
    existsSync(runs(name)) ? readFileSync(runs(name), 'utf8').split('\n').length - 1 : 0
  return {
    /** Shell text that notes that it was come by, and waits while the place is held; `name` may hold variables. */
    shell: (name: string): string =>
      `echo run >> "${runs(name)}"; while [ -e "${hold(name)}" ]; do sleep 0.05; done`,
    hold: (name: string): void => writeFileSync(hold(name), ''),
    release: (name: string): void => rmSync(hold(name), { force: true }),
    count,
    /** Resolves when the place was come by this often. */
    reached: (name: string, times = 1): Promise<true> =>
      until(`${name} is run ${times} times`, () => (count(name) >= times ? true : null), 60_000),
  }
}

/** Shell text that sets `place` to what a check is run for, told by the folder that it runs in. */
export const placeOfCheck =
  'case "$PWD" in */baseline/*) place=baseline;; */clean/*) place=verify;; *) place=validate;; esac'
