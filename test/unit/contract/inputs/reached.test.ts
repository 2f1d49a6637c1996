import { describe, expect, it } from 'vitest'
import { contractOverlap } from '../../../../lib/contract/overlap.ts'
import { aContract } from '../contracts.ts'

const scripts = (all: Record<string, string>) => JSON.stringify({ scripts: all })

/** What a check says of changed files, in a repository that holds some at its base. */
const told = (command: string, base: Record<string, string>, changed: readonly string[]) =>
  contractOverlap(aContract([{ command }]), changed, async (path) => base[path] ?? null)

const changed = ['eslint.config.js', 'jest.config.js', 'ruff.toml', '.npmrc', 'tools/run.js', 'mypy.ini']

type Case = [
  why: string,
  command: string,
  base: Record<string, string>,
  instructions: string[],
  subjects: string[],
]

const cases: Case[] = [
  [
    'a script of package.json',
    'npm test',
    { 'package.json': scripts({ test: 'jest' }) },
    ['jest.config.js', '.npmrc'],
    [],
  ],
  [
    'another script is not run',
    'npm test',
    { 'package.json': scripts({ test: 'ava', lint: 'eslint .' }) },
    ['.npmrc'],
    [],
  ],
  [
    'scripts before and behind it',
    'npm run unit',
    { 'package.json': scripts({ unit: 'ava', preunit: 'eslint .', postunit: 'ruff check' }) },
    ['eslint.config.js', 'ruff.toml', '.npmrc'],
    [],
  ],
  [
    'a script that runs scripts',
    'npm test',
    { 'package.json': scripts({ test: 'run-s "check:*"', 'check:lint': 'eslint .', other: 'jest' }) },
    ['eslint.config.js', '.npmrc'],
    [],
  ],
  [
    'a script that calls nothing known may call anything',
    'npm test',
    { 'package.json': scripts({ test: 'our-runner' }) },
    ['eslint.config.js', 'jest.config.js', '.npmrc'],
    [],
  ],
  [
    'scripts of other packages may call anything',
    'npm test --workspaces',
    { 'package.json': scripts({ test: 'ava' }) },
    ['eslint.config.js', 'jest.config.js', '.npmrc'],
    [],
  ],
  [
    'a package.json that is none',
    'npm test',
    { 'package.json': '{' },
    ['eslint.config.js', 'jest.config.js', '.npmrc'],
    [],
  ],
  [
    'a file that a script runs',
    'npm test',
    { 'package.json': scripts({ test: 'node tools/run.js' }), 'tools/run.js': "spawn('ruff')" },
    ['ruff.toml', '.npmrc'],
    ['tools/run.js'],
  ],
  ['a makefile', 'make check', { Makefile: 'check:\n\truff check\n# make eslint\n' }, ['ruff.toml'], []],
  ['a makefile in a folder', 'make -C sub check', { 'sub/Makefile': 'check:\n\tmypy .\n' }, ['mypy.ini'], []],
  [
    'no makefile: it may run anything',
    'make check',
    {},
    ['eslint.config.js', 'jest.config.js', 'ruff.toml', '.npmrc', 'mypy.ini'],
    [],
  ],
  [
    'a shell script and what that calls',
    'bin/check',
    { 'bin/check': '#!/bin/sh\n. lib/more.sh\n', 'lib/more.sh': 'jest "$@"\n' },
    ['jest.config.js'],
    [],
  ],
  [
    'a shell script without an ending, and a package manager in it',
    'bash check',
    { check: 'npm run lint' },
    ['eslint.config.js', 'jest.config.js', '.npmrc'],
    [],
  ],
  [
    'a file that a makefile includes',
    'make check',
    { Makefile: 'include build/rules.mk\n', 'build/rules.mk': 'check:\n\truff check\n' },
    ['ruff.toml'],
    [],
  ],
  ['tox', 'tox', { 'tox.ini': '[testenv]\ncommands = mypy src\n' }, ['mypy.ini'], []],
]

describe('what a command starts is followed through the files of the base', () => {
  it.each(cases)('%s', async (_, command, base, instructions, subjects) => {
    const found = await told(command, base, changed)
    expect(found.instructions).toEqual(instructions)
    const touched = found.overlap.flatMap(({ paths }) => paths)
    expect(touched.toSorted()).toEqual([...instructions, ...subjects].toSorted())
  })

  it('ends where files call each other', async () => {
    const base = {
      'a.sh': 'sh b.sh',
      'b.sh': 'sh a.sh; npm test',
      'package.json': scripts({ test: 'npm test' }),
    }
    expect((await told('sh a.sh', base, ['b.sh'])).overlap).toMatchObject([{ paths: ['b.sh'] }])
  })
})
