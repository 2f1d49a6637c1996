import { expect, test } from 'vitest'
import { mayBeOfRun } from '../../../lib/process/found.ts'
import type { ProcessStat } from '../../../lib/process/stat.ts'

/** init 1 → shell 10 → launcher 20 → worker 30, the last of which looks; the run began at 300. */
const looker = 30
const since = 300
const stat = (pid: number, parent: number, more: Partial<ProcessStat> = {}): ProcessStat => ({
  ...{ pid, parent, group: pid, state: 'S', terminal: 0, started: pid * 10 },
  ...more,
})
const ours = [stat(1, 0), stat(10, 1), stat(20, 10), stat(30, 20)]

const isOfRun = (one: ProcessStat, others: ProcessStat[] = [], began: number | null = since): boolean =>
  mayBeOfRun(one, began, {
    all: new Map([...ours, ...others, one].map((each) => [each.pid, each])),
    looker,
  })

test.each<[string, ProcessStat, ProcessStat[], boolean]>([
  ['an orphan that the first process took', stat(50, 1), [], true],
  ['an orphan that a process above us took', stat(50, 10), [], true],
  ['the child of an orphan', stat(60, 50), [stat(50, 1)], true],
  ['an orphan whose parent has just gone', stat(60, 50), [], true],
  ['a zombie', stat(50, 1, { state: 'Z' }), [], false],
  ['what is older than the run', stat(50, 1, { started: 299 }), [], false],
  ['what a service from before the run started', stat(60, 50), [stat(50, 1, { started: 5 })], false],
  ['what a person has at a terminal', stat(50, 1, { terminal: 34817 }), [], false],
  ['what comes from outside of what can be seen', stat(50, 0), [], false],
  ['a child of ours', stat(50, looker), [], false],
  ['what a child of ours started', stat(60, 50), [stat(50, looker)], false],
  ['the process above us', stat(20, 10, { started: 999 }), [], false],
  ['a circle of parents, read while they changed', stat(60, 50), [stat(50, 60)], false],
])('found in the folder of a run: %s', (_, one, others, expected) => {
  expect(isOfRun(one, others)).toBe(expected)
})

test('where the start of the run is not known, only an orphan is its', () => {
  expect(isOfRun(stat(50, 1, { started: 5 }), [], null)).toBe(true)
  expect(isOfRun(stat(60, 50), [stat(50, 1)], null)).toBe(false)
})

test('as the first process of a container, orphans are our children', () => {
  const all = new Map([stat(1, 0), stat(50, 1)].map((each) => [each.pid, each]))
  expect(mayBeOfRun(stat(50, 1), 10, { all, looker: 1 })).toBe(true)
})
