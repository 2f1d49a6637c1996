import { describe, expect, it } from 'vitest'
import { disclosuresOf } from '../../../lib/disclosure/disclosures.ts'
import { leadsOut } from '../../../lib/disclosure/links.ts'
import type { ChangedPath } from '../../../lib/workspace/changes.ts'

const change = (path: string, more: Partial<ChangedPath> = {}): ChangedPath => ({
  ...{ path, old_path: null, status: 'added', binary: false, insertions: 1, deletions: 0 },
  ...{ old_mode: '000000', new_mode: '100644' },
  ...more,
})

const told = (changes: ChangedPath[], targets: Record<string, string> = {}) =>
  disclosuresOf(changes, {
    instructions: [],
    shadows: [],
    reordered: ['odd.js'],
    targets: new Map(Object.entries(targets)),
  })

describe('a link', () => {
  it.each([
    ['p', '/etc/passwd'],
    ['p', '..'],
    ['a/b/p', '../../../x'],
    ['a/p', '../../a/x'],
    // `l` may be a link, behind which .. is another folder.
    ['p', 'l/../x'],
    ['p', '.git/config'],
    ['p', 'sub/.GIT/hooks'],
    ['p', 'C:/Windows'],
    ['p', ''],
  ])('%s → %s leads out of the tree', (path, target) => {
    expect(leadsOut(path, target)).toBe(true)
  })

  it.each([
    ['p', 'a'],
    ['p', './a/b'],
    ['a/p', '..'],
    ['a/b/p', '../../x'],
    ['a/b/p', './../c'],
    ['p', '..a/b'],
    ['p', '.github/x'],
  ])('%s → %s stays in it', (path, target) => {
    expect(leadsOut(path, target)).toBe(false)
  })
})

describe('of a change is disclosed', () => {
  const cases: [string, ChangedPath, string | null][] = [
    ['a new executable', change('run', { new_mode: '100755' }), 'new_executable'],
    [
      'a file that becomes executable',
      change('run', { status: 'modified', old_mode: '100644', new_mode: '100755' }),
      'new_executable',
    ],
    ['not one that was', change('run', { status: 'modified', old_mode: '100755', new_mode: '100755' }), null],
    [
      'not one that is gone',
      change('run', { status: 'deleted', old_mode: '100755', new_mode: '000000' }),
      null,
    ],
    ['a new submodule', change('vendor/x', { new_mode: '160000' }), 'submodule'],
    [
      'a submodule that is gone',
      change('x', { status: 'deleted', old_mode: '160000', new_mode: '000000' }),
      'submodule',
    ],
    ['.gitmodules', change('.gitmodules', { status: 'modified' }), 'submodule'],
    ['.gitattributes in a folder', change('a/.gitattributes'), 'git_attributes'],
    [
      '.gitattributes that got another name',
      change('a', { status: 'renamed', old_path: '.gitattributes' }),
      'git_attributes',
    ],
    ['text that is shown in another order', change('odd.js'), 'reordered_text'],
    ['not where it is gone', change('odd.js', { status: 'deleted' }), null],
    ['not any file', change('src/a.ts'), null],
  ]
  it.each(cases)('%s', (_, one, kind) => {
    const found = told([one])
    expect(found.map((disclosure) => disclosure.kind)).toEqual(kind === null ? [] : [kind])
    for (const { paths, text } of found) {
      expect(paths).toEqual([one.path])
      expect(text).toContain(one.path)
    }
  })

  it('a link that leads out, with where it leads, and one of which that is not known', () => {
    const link = { new_mode: '120000' }
    const found = told([change('p', link), change('q', link), change('r', link)], {
      p: '/etc/passwd',
      q: 'r',
    })
    expect(found).toEqual([
      {
        kind: 'outside_link',
        paths: ['p', 'r'],
        text: 'Links lead out of the tree: p → /etc/passwd, r → unknown.',
      },
    ])
  })
})
