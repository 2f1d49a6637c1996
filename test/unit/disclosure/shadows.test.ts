import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { declaredModules } from '../../../lib/disclosure/declared-python.ts'
import { pythonModules } from '../../../lib/disclosure/python-modules.ts'
import { searchedFolders, shadowing } from '../../../lib/disclosure/shadows.ts'
import type { ChangedPath } from '../../../lib/workspace/changes.ts'
import { aContract } from '../contract/contracts.ts'

const added = (path: string, new_mode = '100644'): ChangedPath => ({
  ...{ path, old_path: null, status: 'added', binary: false, insertions: 1, deletions: 0 },
  ...{ old_mode: '000000', new_mode },
})

/** A repository with a package of its own, which declares one of another name. */
const repository = {
  declared: new Set(['requests', 'yaml']),
  has: (path: string) => path === 'pkg/__init__.py',
}
const shadows = (command: string, ...changes: ChangedPath[]) =>
  shadowing(changes, { ...repository, searched: searchedFolders(aContract([{ command }])) })

describe('a new file that takes a module’s place', () => {
  it.each([
    'wsgiref.py',
    'src/json/__init__.py',
    'tests/queue.py',
    'requests.py',
    'yaml/__init__.py',
    'requests.pyi',
    '_json.cpython-311-x86_64-linux-gnu.so',
    'json.pyc',
    'node_modules/left-pad/index.js',
    'packages/a/node_modules/x/package.json',
    '.venv/lib/python3.12/site-packages/x.pth',
  ])('%s', (path) => {
    expect(shadows('pytest', added(path))).toEqual([path])
  })

  it('or a link to one', () => {
    expect(shadows('pytest', added('json', '120000'))).toEqual(['json'])
  })

  it.each(['pkg/logging.py', 'pkg/json/__init__.py', 'types.ts', 'json.md', 'jsonlike.py', 'json/data.txt'])(
    'not %s, which nobody asks for by that name',
    (path) => {
      expect(shadows('pytest', added(path))).toEqual([])
    },
  )

  it('in a package, where a command looks for modules in it', () => {
    expect(shadows('PYTHONPATH=pkg pytest', added('pkg/logging.py'))).toEqual(['pkg/logging.py'])
    expect(shadows('python pkg/main.py', added('pkg/logging.py'))).toEqual(['pkg/logging.py'])
    expect(shadows('cd pkg && pytest', added('pkg/logging.py'))).toEqual(['pkg/logging.py'])
  })

  it('but not one that was there before', () => {
    const before: ChangedPath = { ...added('json.py'), status: 'modified', old_mode: '100644' }
    expect(shadows('pytest', before)).toEqual([])
  })
})

describe('Python’s own modules', () => {
  it('are all in the list, as the interpreter here names them', () => {
    const program = 'import sys; print("\\n".join(sys.stdlib_module_names))'
    const names = execFileSync('python3', ['-c', program]).toString().trim().split('\n')
    expect(names.filter((name) => !pythonModules.has(name))).toEqual([])
  })
})

describe('packages that a project declares', () => {
  const cases: [string, string, string[]][] = [
    [
      'requirements.txt',
      'requests==2\n# no\n-r other.txt\nPyYAML>=6; python_version > "3"\n',
      ['requests', 'yaml'],
    ],
    [
      'pyproject.toml',
      '[project]\nname = "own"\ndependencies = ["requests[socks]>=2", "own"]\n[dependency-groups]\ndev = ["pytest", {include-group = "x"}]\n',
      ['requests', 'pytest'],
    ],
    ['pyproject.toml', '[tool.poetry.dependencies]\npython = "^3"\nrequests = "*"\n', ['requests']],
    ['pyproject.toml', '[project\n', []],
    ['Pipfile', '[packages]\nrequests = "*"\n', ['requests']],
    [
      'setup.cfg',
      '[options]\ninstall_requires =\n  requests\n  scikit-learn>1\nzip_safe = no\n',
      ['requests', 'sklearn'],
    ],
    ['setup.py', 'setup(name="own", install_requires=["requests", "own"])', ['requests']],
  ]
  it.each(cases)('%s: %j', (path, text, expected) => {
    const found = declaredModules(new Map([[path, text]]))
    expect([...found]).toEqual(expect.arrayContaining(expected))
    expect(found.has('own')).toBe(false)
    expect(found.has('python')).toBe(false)
    expect(found.has('zip_safe')).toBe(false)
    if (expected.length === 0) expect(found.size).toBe(0)
  })
})
