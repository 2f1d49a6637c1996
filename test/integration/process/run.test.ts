import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import { liveProcesses, workerMark } from '../../../lib/process/live.ts'
import { killMarked, type ProcessSpec, runProcess } from '../../../lib/process/run.ts'

let directory: string
let count = 0

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'process-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const specOf = (command: ProcessSpec['command'], more: Partial<ProcessSpec> = {}): ProcessSpec => {
  count += 1
  return {
    ...{ command, cwd: directory, env: { PATH: process.env.PATH ?? '' }, timeoutMs: 20_000 },
    ...{ outputFile: path.join(directory, `${count}.log`), marker: `${directory}-${count}` },
    ...more,
  }
}

const run = (command: ProcessSpec['command'], more: Partial<ProcessSpec> = {}) =>
  runProcess(specOf(command, more))

const marked = async (mark: string) => (await liveProcesses({ group: null, mark })).length

describe('how a child is started', () => {
  it('a string is a shell line exactly as given, without pipefail', async () => {
    expect(await run('false | true')).toMatchObject({ ended: 'exited', exitCode: 0 })
    expect(await run('echo "$0"; exit 3')).toMatchObject({ exitCode: 3, head: '/bin/sh\n' })
  })

  it('a list is run without a shell', async () => {
    expect(await run(['printf', '%s', '$HOME; *'])).toMatchObject({ exitCode: 0, head: '$HOME; *' })
  })

  it('gets the environment it was given and nothing else but the mark', async () => {
    const spec = specOf('env -u PWD', { env: { PATH: '/usr/bin:/bin', A: 'b' } })
    const { head } = await runProcess(spec)
    const names = head
      .trim()
      .split('\n')
      .filter((line) => !/^(_|SHLVL|OLDPWD)=/.test(line))
    expect(names.toSorted()).toEqual(
      ['A=b', `GATEHOUSE_PROCESS_MARK=${spec.marker}`, 'PATH=/usr/bin:/bin'].toSorted(),
    )
  })

  it.each([
    ['an unknown program', ['no-such-program'], {}],
    ['an empty list', [], {}],
    ['a NUL in an argument', ['echo', 'a\0b'], {}],
    ['a working directory that does not exist', 'true', { cwd: '/no/such/directory' }],
    ['an output file that cannot be made', 'true', { outputFile: '/no/such/directory/x.log' }],
  ])('could not start, without throwing: %s', async (_, command, more) => {
    const result = await run(command, more)
    expect(result).toMatchObject({ ended: 'could_not_start', exitCode: null, survivors: 0 })
    expect(result.error).toBeTruthy()
  })

  it('reads end of file from a standard input that was not given', async () => {
    expect(await run('cat; echo done')).toMatchObject({ exitCode: 0, head: 'done\n' })
  })

  it('reads what it was given, also by the name of the device', async () => {
    const stdin = 'line\n'.repeat(200_000)
    expect((await run('wc -c', { stdin })).head.trim()).toBe('1000000')
    expect((await run('cat /dev/stdin | wc -c', { stdin })).head.trim()).toBe('1000000')
  })

  it('is not held up by input that it never reads', async () => {
    const result = await run('exit 4', { stdin: 'x'.repeat(4_000_000) })
    expect(result).toMatchObject({ ended: 'exited', exitCode: 4 })
  })
})

describe('how it ends', () => {
  it.each([
    ['exit 0', { ended: 'exited', exitCode: 0, signal: null }],
    ['exit 126', { ended: 'exited', exitCode: 126 }],
    ['no-such-command-here', { ended: 'exited', exitCode: 127 }],
    ['kill -SEGV $$', { ended: 'signalled', exitCode: null, signal: 'SIGSEGV' }],
    ['kill -KILL $$', { ended: 'signalled', exitCode: null, signal: 'SIGKILL' }],
    ['exec >&- 2>&-; sleep 0.3; exit 5', { ended: 'exited', exitCode: 5 }],
  ])('%s', async (command, expected) => {
    expect(await run(command)).toMatchObject(expected)
  })

  it('out of time: TERM is enough for a child that heeds it', async () => {
    const result = await run('sleep 1000', { timeoutMs: 300 })
    expect(result).toMatchObject({ ended: 'timed_out', survivors: 0 })
    expect(result.durationMs).toBeLessThan(limits.killGraceMs)
  })

  it('out of time: a child that ignores TERM is killed after the grace', async () => {
    const result = await run('trap "" TERM; while :; do sleep 1; done', { timeoutMs: 300 })
    expect(result).toMatchObject({ ended: 'timed_out', signal: 'SIGKILL', survivors: 0 })
    expect(result.durationMs).toBeGreaterThanOrEqual(limits.killGraceMs)
  })

  it('out of time while it exits 0 on TERM is still out of time', async () => {
    const result = await run('trap "exit 0" TERM; while :; do sleep 0.1; done', { timeoutMs: 300 })
    expect(result).toMatchObject({ ended: 'timed_out', exitCode: 0 })
  })

  it('a TERM reaches each process once', async () => {
    const script = 'n=0; trap "n=$((n+1)); echo term" TERM; for i in 1 2 3 4 5 6; do sleep 0.1; done'
    const result = await run(['bash', '-c', `${script}; sleep 0.3`], { timeoutMs: 200 })
    expect(result.head.match(/^term$/gm)).toHaveLength(1)
  })

  it('cancelled: a grandchild in a session of its own is gone as well', async () => {
    const cancel = new AbortController()
    const spec = specOf('setsid sh -c "sleep 1000" & sh -c "sleep 1000; true"', { signal: cancel.signal })
    const running = runProcess(spec)
    while ((await marked(spec.marker)) < 3) await sleep(20)
    cancel.abort()
    expect(await running).toMatchObject({ ended: 'cancelled', survivors: 0 })
    expect(await marked(spec.marker)).toBe(0)
  })

  it('cancelled before it began: nothing runs', async () => {
    const result = await run('echo no', { signal: AbortSignal.abort() })
    expect(result).toMatchObject({ ended: 'cancelled', bytes: 0 })
  })
})

describe('what it leaves behind', () => {
  it.each([
    ['in its group, holding the output', 'sleep 1000 & echo out'],
    ['in its group, ignoring TERM', '(trap "" TERM; while :; do sleep 1; done) & echo out'],
    ['out of its group', 'setsid sleep 1000 & echo out'],
    [
      'out of its group, twice removed',
      'setsid sh -c "setsid sleep 1000 & sleep 1000" & echo out; sleep 0.2',
    ],
    ['in its group, without the mark', 'env -i sleep 1000 & echo out'],
  ])('a process %s is ended with it', async (_, command) => {
    const spec = specOf(command)
    const result = await runProcess(spec)
    expect(result).toMatchObject({ ended: 'exited', exitCode: 0, head: 'out\n', survivors: 0 })
    expect(await marked(spec.marker)).toBe(0)
  })

  it('a process without group and mark is found by the output that it holds', async () => {
    const pid = path.join(directory, 'pid')
    const result = await run(`env -i setsid sh -c 'echo $$ > ${pid}; sleep 1000' & echo out; sleep 0.3`)
    const group = Number(await readFile(pid, 'utf8'))
    expect(await liveProcesses({ group, mark: null })).toEqual([])
    expect(result).toMatchObject({ ended: 'exited', exitCode: 0, head: 'out\n' })
    expect(result.durationMs).toBeLessThan(2500)
  })

  it('the mark of a worker finds the processes of all its runs', async () => {
    const mark = `worker-${directory}`
    const env = { PATH: process.env.PATH ?? '', [workerMark]: mark }
    const running = [run('sleep 1000', { env }), run('setsid sleep 1000', { env })]
    while ((await marked(mark)) < 2) await sleep(20)
    expect(await killMarked(mark)).toBe(0)
    for (const result of await Promise.all(running)) {
      expect(result.ended === 'signalled' || result.exitCode !== 0).toBe(true)
    }
  })

  it('no mark, no kill: another run goes on', async () => {
    const spec = specOf('sleep 0.5; echo lived')
    const running = runProcess(spec)
    expect(await killMarked(`${spec.marker}-other`)).toBe(0)
    expect(await running).toMatchObject({ exitCode: 0, head: 'lived\n' })
  })
})

describe('its output', () => {
  it('keeps the order of the two streams and lets the devices be opened', async () => {
    const { head } = await run('echo 1; echo 2 >&2; echo 3; echo 4 >/dev/stderr; echo 5 >/dev/stdout')
    expect(head).toBe('1\n2\n3\n4\n5\n')
  })

  it('200 MB cost little memory; the file has both ends and counts the gap', async () => {
    const before = process.memoryUsage().rss
    let peak = before
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss)
    }, 20)
    const spec = specOf('echo first; yes 0123456789abcdef | head -c 209715200; echo; echo last')
    const result = await runProcess(spec)
    clearInterval(watch)
    expect(result.bytes).toBe(209_715_200 + 6 + 1 + 5)
    expect(result.omittedBytes).toBe(result.bytes - limits.artifact)
    expect(result.head.startsWith('first\n')).toBe(true)
    expect(result.tail.endsWith('\nlast\n')).toBe(true)
    expect((peak - before) / 1e6).toBeLessThan(80)
    const text = await readFile(spec.outputFile, 'utf8')
    expect(text).toContain(`\n[${result.omittedBytes} bytes omitted here]\n`)
    expect(text.startsWith('first\n')).toBe(true)
    expect(text.endsWith('\nlast\n')).toBe(true)
    expect((await stat(spec.outputFile)).size).toBeLessThan(limits.artifact + 100)
  }, 30_000)

  it('head and tail meet when nothing is left out', async () => {
    const size = limits.outputHead + limits.outputTail
    const result = await run(`head -c ${size} /dev/zero | tr '\\0' x`)
    expect(result.head + result.tail).toBe('x'.repeat(size))
  })

  it.each([0, 1, 2, 3])('no character is cut in two (shifted by %i)', async (shift) => {
    const text = 'a'.repeat(shift) + '€😀é'.repeat(3000)
    const result = await run('cat', { stdin: text })
    expect(text.startsWith(result.head)).toBe(true)
    expect(text.endsWith(result.tail)).toBe(true)
    expect(Buffer.byteLength(result.head)).toBeGreaterThan(limits.outputHead - 4)
    expect(Buffer.byteLength(result.tail)).toBeGreaterThan(limits.outputTail - 4)
    const short = 'a'.repeat(shift) + '€😀é'.repeat(600)
    const whole = await run('cat', { stdin: short })
    expect(whole.head + whole.tail).toBe(short)
  })

  it.each([0, 1, 5, 9, 14, 20])(
    'no character is cut that people see as one (shifted by %i)',
    async (shift) => {
      const family = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}'
      const text = 'a'.repeat(shift) + family.repeat(1000)
      const result = await run('cat', { stdin: text })
      expect(result.head.slice(shift).replaceAll(family, '')).toBe('')
      expect(result.tail.replaceAll(family, '')).toBe('')
      expect(Buffer.byteLength(result.head)).toBeGreaterThan(limits.outputHead - Buffer.byteLength(family))
      expect(Buffer.byteLength(result.tail)).toBeGreaterThan(limits.outputTail - Buffer.byteLength(family))
    },
  )

  it('nor in the file', async () => {
    const family = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}'
    const spec = specOf(`yes ${family} | tr -d '\\n' | head -c 18000000`)
    const { omittedBytes } = await runProcess(spec)
    const [head = '', tail = ''] = (await readFile(spec.outputFile, 'utf8')).split(
      `\n[${omittedBytes} bytes omitted here]\n`,
    )
    expect(head.length % family.length).toBe(0)
    expect(tail.startsWith(family)).toBe(true)
    expect(Buffer.byteLength(head) + Buffer.byteLength(tail) + omittedBytes).toBe(18_000_000)
  })

  it('invalid UTF-8 and NUL become U+FFFD in text and stay as they are in the file', async () => {
    const spec = specOf("printf 'a\\377b\\000c'")
    const result = await runProcess(spec)
    expect(result.head).toBe('a\uFFFDb\uFFFDc')
    expect(await readFile(spec.outputFile)).toEqual(Buffer.from([0x61, 0xff, 0x62, 0, 0x63]))
  })

  it('is reported while it comes, whole characters at a time', async () => {
    const pieces: string[] = []
    await run("printf '\\342\\202'; sleep 0.2; printf '\\254\\000'", {
      onOutput: (text) => pieces.push(text),
    })
    expect(pieces.join('')).toBe('€\uFFFD')
    expect(pieces).not.toContain('')
  })
})
