import { join } from 'node:path'
import type { FileSpec } from '../../repositories.ts'

const modules = join(import.meta.dirname, '..', '..', '..', 'node_modules')

/** One way in which a real tool finds what stands above the folder it works in. */
export type LookUp = {
  tool: string
  /** What has to be there for the tool to run at all. */
  needs: string
  tree?: Record<string, FileSpec>
  /** Put into a folder above the tree. */
  planted: Record<string, FileSpec>
  /** Run in the tree; prints `found` only if it found what was planted. */
  command: string
}

const found = "console.log('found')"
const program = { content: '#!/bin/sh\necho found\n', executable: true } as const

export const lookUps: readonly LookUp[] = [
  {
    ...{ tool: 'node, require', needs: 'node', command: 'node -e "require(\'planted\')"' },
    planted: { 'node_modules/planted/index.js': found },
  },
  {
    ...{ tool: 'node, import', needs: 'node', tree: { 'a.mjs': "import 'planted'" }, command: 'node a.mjs' },
    planted: { 'node_modules/planted/index.js': found },
  },
  {
    ...{
      tool: 'node, the type of a file',
      needs: 'node',
      tree: { 'a.js': "console.log(typeof require === 'function' ? '' : 'found')" },
    },
    ...{ planted: { 'package.json': '{"type":"module"}' }, command: 'node a.js' },
  },
  {
    ...{ tool: 'npm, the project', needs: 'npm', command: 'npm run --silent planted' },
    planted: { 'package.json': '{"scripts":{"planted":"echo found"}}' },
  },
  {
    ...{
      tool: 'npm, programs of scripts',
      needs: 'npm',
      tree: { 'package.json': '{"scripts":{"v":"node -v"}}' },
    },
    ...{ planted: { 'node_modules/.bin/node': program }, command: 'npm run --silent v' },
  },
  {
    ...{ tool: 'npx', needs: 'npx', planted: { 'node_modules/.bin/planted': program } },
    command: 'npx --no-install planted',
  },
  {
    ...{ tool: 'npx, the node it runs', needs: 'npx', planted: { 'node_modules/.bin/node': program } },
    command: 'npx --no-install node -v',
  },
  {
    ...{
      tool: 'vitest',
      needs: 'node',
      tree: { 'a.test.js': "import { test } from 'vitest'\ntest('a', () => {})" },
    },
    planted: { 'vitest.config.mjs': "console.log('found')\nexport default {}" },
    command: `node '${join(modules, 'vitest', 'vitest.mjs')}' run`,
  },
  {
    ...{
      tool: 'tsc',
      needs: 'node',
      tree: { 'a.ts': '' },
      planted: { 'tsconfig.json': '{"include":["found"]}' },
    },
    command: `node '${join(modules, 'typescript', 'bin', 'tsc')}' --showConfig`,
  },
  {
    ...{
      tool: 'pytest',
      needs: 'pytest',
      tree: { 'test_a.py': 'def test_a(): pass' },
      command: 'pytest -q -s',
    },
    planted: { 'pytest.ini': '[pytest]\n', 'conftest.py': "print('found')" },
  },
  {
    ...{ tool: 'git', needs: 'git', command: 'git rev-parse --git-dir >/dev/null 2>&1 && echo found' },
    planted: { '.git/HEAD': 'ref: refs/heads/x\n', '.git/objects/x': '', '.git/refs/x': '' },
  },
  {
    ...{ tool: 'cargo, the workspace', needs: 'cargo' },
    planted: { 'Cargo.toml': '[package]\nname = "found"\nversion = "1.0.0"\n', 'src/lib.rs': '' },
    command: 'cargo metadata --offline --no-deps --format-version 1',
  },
  {
    ...{
      tool: 'cargo, its settings',
      needs: 'cargo',
      planted: { '.cargo/config.toml': '[alias]\nplanted = "version"\n' },
    },
    command: 'cargo planted && echo found',
  },
  {
    ...{ tool: 'go', needs: 'go', planted: { 'go.mod': 'module found\n' }, command: 'go list -m' },
  },
]
