import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type CommandEngineRun, runCommandEngine } from '../../../lib/engine/command.ts'
import { engineRunnable } from '../../../lib/engine/runnable.ts'

let root: string
let tree: string

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'engine-'))
  tree = path.join(root, 'tree')
  await mkdir(tree)
})
afterEach(() => rm(root, { recursive: true, force: true }))

const run = (command: CommandEngineRun['command'], more: Partial<CommandEngineRun> = {}) =>
  runCommandEngine({
    ...{ command, tree, prompt: 'Do it: “x”\n', promptFile: path.join(root, 'prompt.md'), iteration: 2 },
    ...{ sessionId: 'ses_1', env: { PATH: process.env.PATH ?? '' }, timeoutMs: 20_000, marker: root },
    outputFile: path.join(root, 'engine.log'),
    ...more,
  })

describe('a command as the engine', () => {
  it('gets the task on its input, in a file outside the tree, and by whom it is asked', async () => {
    const outcome = await run(
      'cat > got && cmp got "$GATEHOUSE_PROMPT_FILE" && echo "$GATEHOUSE_SESSION_ID $GATEHOUSE_ITERATION"',
    )
    expect(outcome).toMatchObject({
      status: 'finished',
      exit_code: 0,
      output_head: 'ses_1 2\n',
      survivors: 0,
    })
    expect(await readFile(path.join(tree, 'got'), 'utf8')).toBe('Do it: “x”\n')
  })

  describe('its tools', () => {
    const tools = { url: 'http://127.0.0.1:4321', token: 'gh_run' }
    const seen = async (more: Partial<CommandEngineRun>) =>
      (await run('env | grep -Ei "^(GATEHOUSE_TOOLS|no_proxy)" | sort', more)).output_head
        .split('\n')
        .slice(0, -1)
    const told = ['GATEHOUSE_TOOLS_TOKEN=gh_run', 'GATEHOUSE_TOOLS_URL=http://127.0.0.1:4321']

    it('are named in its environment, where there are any', async () => {
      expect(await seen({ tools })).toEqual(told)
      expect(await seen({})).toEqual([])
    })

    it.each([
      [{ https_proxy: 'http://proxy:1' }, '127.0.0.1'],
      [{ HTTP_PROXY: 'http://proxy:1', NO_PROXY: 'a.example' }, 'a.example,127.0.0.1'],
      [{ ALL_PROXY: 'http://proxy:1', NO_PROXY: 'a.example', no_proxy: 'b.example' }, 'b.example,127.0.0.1'],
      [{ http_proxy: 'http://proxy:1', no_proxy: '*' }, '*'],
    ])('are not reached by its proxy: %j', async (proxy, direct) => {
      const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C', ...proxy }
      expect(await seen({ env, tools })).toEqual([...told, `NO_PROXY=${direct}`, `no_proxy=${direct}`])
    })
  })

  it.each<[string, CommandEngineRun['command'], string]>([
    ['exit 0 whatever it says', 'echo "FATAL: rate limit, I failed"', 'finished'],
    ['exit 1 whatever it says', 'echo "All done!"; exit 1', 'failed'],
    ['exit 126', 'exit 126', 'unavailable'],
    ['exit 127', 'no-such-engine --go', 'unavailable'],
    ['a list whose program is missing', ['no-such-engine'], 'unavailable'],
    ['exit 137', 'exit 137', 'killed'],
    ['SIGKILL', 'kill -KILL $$', 'killed'],
    ['another signal', 'kill -SEGV $$', 'failed'],
  ])('%s', async (_, command, status) => {
    expect(await run(command)).toMatchObject({ status })
  })

  it('out of time, with what it printed until then', async () => {
    const outcome = await run('echo begun; sleep 1000', { timeoutMs: 300 })
    expect(outcome).toMatchObject({ status: 'timed_out', output_head: 'begun\n', survivors: 0 })
  })

  it('cancelled', async () => {
    const cancel = new AbortController()
    const heard: string[] = []
    const outcome = await run('echo begun; setsid sleep 1000 & sleep 1000', {
      signal: cancel.signal,
      onOutput: (text) => {
        heard.push(text)
        cancel.abort()
      },
    })
    expect(outcome).toMatchObject({ status: 'cancelled', survivors: 0 })
    expect(heard).toEqual(['begun\n'])
  })
})

describe('whether it could be started', () => {
  it.each<[CommandEngineRun['command'], string | null]>([
    ['anything | goes', null],
    ['  ', 'is empty'],
    [[], 'is empty'],
    [['sh', '-c', 'x'], null],
    [['no-such-engine'], 'is not on the PATH'],
    [['/bin/sh'], null],
    [['/bin'], 'is not a file'],
    [['/no/such'], 'is not a file'],
    [['./in-the-tree'], null],
  ])('%j', (command, problem) => {
    const answer = engineRunnable(command, '/usr/bin:/bin')
    if (problem === null) expect(answer).toBeNull()
    else expect(answer).toContain(problem)
  })

  it('a file that is not executable is none', async () => {
    const file = path.join(root, 'engine')
    await writeFile(file, '#!/bin/sh\n')
    expect(engineRunnable([file], '')).toContain('is not executable')
    expect(engineRunnable(['engine'], root)).toContain('is not on the PATH')
    await chmod(file, 0o755)
    expect(engineRunnable([file], '')).toBeNull()
    expect(engineRunnable(['engine'], root)).toBeNull()
  })
})
