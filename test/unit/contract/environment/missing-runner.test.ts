import { describe, expect, it } from 'vitest'
import { runnerIsMissing } from '../../../../lib/contract/environment/missing-runner.ts'
import { aProcess } from '../contracts.ts'

const run = (command: string, exitCode: number, head: string) =>
  runnerIsMissing(command, aProcess({ exitCode, head, bytes: Buffer.byteLength(head) }))

const npm11 = [
  'npm error Missing script: "lint"',
  'npm error',
  'npm error To see a list of scripts, run:',
  'npm error   npm run',
  'npm error A complete log of this run can be found in: /home/ada/.npm/_logs/2030-01-01T05_14_54_255Z-debug-0.log',
  '',
].join('\n')
const npm10 = npm11.replaceAll('npm error', 'npm ERR!').replace('npm run\n', 'npm run\n\n')
const noYes = 'npm error npx canceled due to missing packages and no YES option: ["cowsay@1.6.0"]\n'
const offline =
  "npm error code ENOTCACHED\nnpm error request to https://registry.npmjs.org/@a%2fb failed: cache mode is 'only-if-cached' but no cached response is available.\n"
const notFound =
  'npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/nosuchx\nnpm error 404\n'
const node =
  "node:internal/modules/cjs/loader:1568\n  throw err;\n  ^\n\nError: Cannot find module '/tree/test/a.js'\n    at Module._load (node:internal/modules/cjs/loader:1341:5) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n"
const noRule = "make: *** No rule to make target 'lint'.  Stop.\n"
const cargo = 'error: no such command: `nextest`\n\nhelp: view all installed commands with `cargo --list`\n'

describe('what tools print when what they should run is not there', () => {
  it.each([
    ['npm 11.19.1', 'npm run lint', 1, npm11],
    ['npm 11.19.1', 'npm test', 1, npm11.replace('lint', 'test')],
    ['npm 10.2.4', 'npm run-script lint -- --fix', 1, npm10],
    ['npx 11.19.1', 'npx --no-install cowsay hi', 1, noYes],
    ['npx 10.2.4', 'npx --no cowsay@1', 1, noYes.replace('npm error', 'npm ERR!')],
    ['npx 11.19.1', 'npx --offline @a/b', 1, offline],
    ['npx 11.19.1', 'npx --no-install nosuchx', 1, notFound],
    ['Python 3.11.7', 'python3 -m nosuch', 1, '/usr/bin/python3: No module named nosuch\n'],
    [
      'Python 3.11.7',
      'python3 t/a.py',
      2,
      "python3: can't open file '/x/t/a.py': [Errno 2] No such file or directory\n",
    ],
    ['Node 24.21.0', 'node test/a.js', 1, node],
    ['Node 24.21.0', 'node --test a.js', 1, "Could not find 'a.js'\n"],
    ['Node 20.20.2', 'node --test a.js', 1, "Could not find '/tree/a.js'\n"],
    ['dash 0.5.12', 'sh run.sh', 2, 'sh: 0: cannot open run.sh: No such file\n'],
    ['GNU Make 4.3', 'make -s lint', 2, noRule],
    ['GNU Make 4.3', 'make', 2, 'make: *** No targets specified and no makefile found.  Stop.\n'],
    ['cargo 1.95.0', 'cargo nextest run', 101, cargo],
    ['behind a shell', "bash -lc 'make lint'", 2, noRule],
    ['behind two', `sh -c "bash -c 'make lint'"`, 2, noRule],
  ])('%s: %s', (_, command, exitCode, output) => {
    expect(run(command, exitCode, output)).toBe(true)
  })

  it.each([
    ['another exit code', 'make lint', 1, noRule],
    ['another name', 'make test', 2, noRule],
    ['more output', 'make lint', 2, `building\n${noRule}`],
    [
      'a target that another needs',
      'make all',
      2,
      "make: *** No rule to make target 'dep', needed by 'all'.  Stop.\n",
    ],
    ['a script that prints npm’s words', 'npm run lint', 1, `\n> lint\n> ./lint\n\n${npm11}`],
    ['another command behind it', "bash -c 'make lint; exit 2'", 2, noRule],
    ['an expansion', 'bash -c "make $X"', 2, noRule],
    ['a module that another requires', 'node test/a.js', 1, node.replace('[]', "[ '/tree/b.js' ]")],
    ['a registry out of reach', 'npx --no-install cowsay', 1, 'npm error code ECONNREFUSED\n'],
    [
      'pytest without the file (pytest 9.0.3)',
      'pytest a.py',
      4,
      'ERROR: file or directory not found: a.py\n',
    ],
  ])('is no proof: %s', (_, command, exitCode, output) => {
    expect(run(command, exitCode, output)).toBe(false)
  })
})
