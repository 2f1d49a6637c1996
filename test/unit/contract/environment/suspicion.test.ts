import { expect, it } from 'vitest'
import { suspicionIn } from '../../../../lib/contract/environment/suspicion.ts'
import { judge } from '../../../../lib/contract/verdict.ts'
import { limits } from '../../../../lib/limits.ts'
import { aCheck, aRun } from '../contracts.ts'

const own = (module: string) => module.startsWith('mine')

it.each([
  'bash: line 1: nosuch: command not found',
  './run.sh: 3: nosuch: not found',
  'zsh: command not found: nosuch',
  'env: ‘node’: No such file or directory',
  'make: nosuchcmd: No such file or directory',
  './run.sh: line 4: ./tool: Permission denied',
  "Error: Cannot find module 'zod'",
  "a.ts(1,1): error TS2307: Cannot find module 'zod' or its corresponding type declarations.",
  "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@a/b' imported from /tree/a.js",
  "E   ModuleNotFoundError: No module named 'numpy'",
  '/usr/bin/python3: No module named pytest',
  './prog: error while loading shared libraries: libfoo.so.1: cannot open shared object file',
  'Error: spawn chromium ENOENT',
  "Error: EACCES: permission denied, open '/var/x'",
  'dial tcp: lookup db on 127.0.0.53:53: no such host',
  'Error: getaddrinfo ENOTFOUND db',
  'npm error Missing script: "lint"',
  'ERROR: file or directory not found: a.py',
  "error TS5058: The specified path does not exist: '/tree/a.json'.",
])('raises a suspicion: %s', (line) => {
  expect(suspicionIn(`1 test\n\u001b[31m  ${line}\u001b[39m\r\nend`, own)).toBe(line)
})

it.each([
  "Error: Cannot find module './lib'",
  "Error: Cannot find module '/tree/lib.js'",
  "Error: Cannot find module '@/lib'",
  "ModuleNotFoundError: No module named 'mine.more'",
  'AssertionError: expected "command not found" to be ""',
  "FileNotFoundError: [Errno 2] No such file or directory: 'data/in.csv'",
  '1 failed, 2 passed',
])('raises none: %s', (line) => {
  expect(suspicionIn(line, own)).toBeNull()
})

it('is one line that may be shown, and no longer than its limit', () => {
  const line = suspicionIn(`Cannot find module 'a\u202e${'x'.repeat(500)}'`, own)
  expect(line).toMatch(/^Cannot find module 'a<U\+202E>x+$/)
  expect(line).toHaveLength(limits.suspicion)
})

it('changes the reason of a red and no verdict', () => {
  const told = { suspicion: 'sh: 1: x: not found', digest: 'd' }
  const verdict = (exitCode: number, check = {}, facts = {}) =>
    judge(aCheck(check), [{ ...aRun({ exitCode }, facts), told }], {
      ...{ phase: 'gate', captures: {}, artifact: () => null },
    })
  const suspect = { suspicion: told.suspicion, output_digest: 'd', passed: false, verdict: 'failed' }
  expect(verdict(1)).toMatchObject({ ...suspect, reason: 'suspect_environment' })
  expect(verdict(0, {}, { assertion: 'missing' })).toMatchObject({ ...suspect, reason: 'output_missing' })
  const missing = verdict(127)
  expect(missing).toMatchObject({ verdict: 'could_not_run', reason: 'command_not_found' })
  expect(missing).not.toHaveProperty('suspicion')
  expect(verdict(1, { expect_exit_zero: false })).not.toHaveProperty('suspicion')
})
