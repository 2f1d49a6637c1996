import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { startTools, type Tools, type ToolsOptions } from '../../../functions/worker/tools.ts'
import { type CommandEngineRun, runCommandEngine } from '../../../lib/engine/command.ts'
import { buildPrompt } from '../../../lib/engine/prompt.ts'
import { type AskOutcome, toolErrorSchema, toolLimits } from '../../../lib/engine/tools.ts'
import { aContract } from '../../unit/contract/contracts.ts'

const nobody: ToolsOptions = {
  ask: async () => ({ kind: 'refused', reason: 'there is nobody to ask' }),
  guidance: async () => [],
  journal: {
    appendAs: async () => ({ sequence: 0, records: [], receipt: null }),
    state: () => Promise.reject(new Error('there is no journal')),
    settled: async () => {},
  },
  now: () => Date.parse('2030-01-01T00:00:00Z'),
}

let started: Tools[] = []
let sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await Promise.all(started.map((tools) => tools.close()))
  started = []
  sockets = []
})

const start = async (options: Partial<ToolsOptions> = {}): Promise<Tools> => {
  const tools = await startTools({ ...nobody, ...options })
  started.push(tools)
  return tools
}

const call = async (tools: Tools, name: string, body: unknown, more: RequestInit = {}) => {
  const response = await fetch(`${tools.url}/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tools.token}` },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...more,
  })
  const answer: unknown = await response.json()
  return { status: response.status, headers: response.headers, answer }
}

const refusal = async (...args: Parameters<typeof call>) => {
  const { status, answer } = await call(...args)
  return { status, code: toolErrorSchema.parse(answer).error.code }
}

const until = <Value>(condition: () => Value) => vi.waitUntil(condition, { timeout: 20_000, interval: 5 })

/** Somebody who is asked, and answers when the test says so. */
const person = () => {
  const asked: { prompt: string; signal: AbortSignal; settle: (outcome: AskOutcome) => void }[] = []
  const ask: ToolsOptions['ask'] = (prompt, signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<AskOutcome>()
    signal.addEventListener('abort', () => reject(new Error('withdrawn')))
    asked.push({ prompt, signal, settle: resolve })
    return promise
  }
  const question = (at: number) => until(() => asked[at])
  return { ask, asked, question }
}

/** A connection without a client library; what it was sent, and when it was closed. */
const raw = (tools: Tools, text = '') => {
  const socket = connect(Number(new URL(tools.url).port), '127.0.0.1')
  sockets.push(socket)
  let received = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    received += chunk
  })
  const closed = new Promise<string>((resolve) => {
    socket.on('error', () => {}).on('close', () => resolve(received))
  })
  if (text !== '') socket.write(text)
  return { socket, closed, received: () => received }
}

const head = (tools: Tools, name: string, ...more: string[]) =>
  [
    `POST /${name} HTTP/1.1`,
    `Host: ${new URL(tools.url).host}`,
    `Authorization: Bearer ${tools.token}`,
    ...more,
    '',
    '',
  ].join('\r\n')

describe('ask_user', () => {
  it('waits for a person and gives their answer', async () => {
    const { ask, question } = person()
    const tools = await start({ ask })
    const answer = call(tools, 'ask_user', { prompt: 'Tabs or “spaces”?' })
    const { prompt, settle } = await question(0)
    expect(prompt).toBe('Tabs or “spaces”?')
    settle({ kind: 'answered', text: 'tabs' })
    expect(await answer).toMatchObject({ status: 200, answer: { text: 'tabs' } })
  })

  it.each<[AskOutcome, number, string, string]>([
    [{ kind: 'expired', waited_secs: 600 }, 408, 'expired', '600 s'],
    [{ kind: 'refused', reason: 'not in this mode' }, 409, 'refused', 'not in this mode'],
  ])('%j is an error of the tool', async (outcome, status, code, message) => {
    const tools = await start({ ask: async () => outcome })
    expect(await call(tools, 'ask_user', { prompt: 'x' })).toMatchObject({
      ...{ status, answer: { error: { code, message: expect.stringContaining(message) } } },
    })
  })

  it('takes one question at a time', async () => {
    const { ask, asked, question } = person()
    const tools = await start({ ask })
    const first = call(tools, 'ask_user', { prompt: 'first' })
    await question(0)
    expect(await refusal(tools, 'ask_user', { prompt: 'second' })).toEqual({
      ...{ status: 409, code: 'question_pending' },
    })
    asked[0]?.settle({ kind: 'answered', text: 'one' })
    expect(await first).toMatchObject({ answer: { text: 'one' } })
    const third = call(tools, 'ask_user', { prompt: 'third' })
    const { prompt, settle } = await question(1)
    expect(prompt).toBe('third')
    settle({ kind: 'answered', text: 'three' })
    expect(await third).toMatchObject({ answer: { text: 'three' } })
  })

  it('is withdrawn when its caller is gone, and another can be asked', async () => {
    const { ask, question } = person()
    const tools = await start({ ask })
    const gone = new AbortController()
    const first = call(tools, 'ask_user', { prompt: 'first' }, { signal: gone.signal })
    const { signal } = await question(0)
    expect(signal.aborted).toBe(false)
    gone.abort()
    await expect(first).rejects.toThrow()
    await until(() => signal.aborted)
    const second = call(tools, 'ask_user', { prompt: 'second' })
    const next = await question(1)
    next.settle({ kind: 'answered', text: 'two' })
    expect(await second).toMatchObject({ answer: { text: 'two' } })
  })

  it('says so when it could not be passed on', async () => {
    const tools = await start({ ask: () => Promise.reject(new Error('secret of the inside')) })
    const { status, answer } = await call(tools, 'ask_user', { prompt: 'x' })
    expect(status).toBe(503)
    expect(JSON.stringify(answer)).not.toContain('secret')
    expect(await refusal(tools, 'ask_user', { prompt: 'x' })).toEqual({ status: 503, code: 'unavailable' })
  })
})

describe('guidance', () => {
  const [one, two] = [
    { id: 'a', text: 'use tabs' },
    { id: 'b', text: 'no, spaces' },
  ]

  it('is handed out once, and what was handed out is reported', async () => {
    const given = [one]
    const tools = await start({ guidance: async () => given })
    expect(await call(tools, 'guidance', {})).toMatchObject({ status: 200, answer: { messages: [one] } })
    expect(await call(tools, 'guidance', '')).toMatchObject({ status: 200, answer: { messages: [] } })
    given.push(two)
    expect(await call(tools, 'guidance', {})).toMatchObject({ status: 200, answer: { messages: [two] } })
    expect(tools.reports().applied).toEqual(['a', 'b'])
  })

  it('is looked up once for calls that come together, and given to one of them', async () => {
    const { promise, resolve } = Promise.withResolvers<(typeof one)[]>()
    const guidance = vi.fn(() => promise)
    const tools = await start({ guidance })
    const callers = Array.from({ length: 10 }, () => call(tools, 'guidance', {}))
    await until(() => guidance.mock.calls.length > 0)
    resolve([one, two])
    const answers = await Promise.all(callers)
    expect(answers.map(({ answer }) => answer)).toContainEqual({ messages: [one, two] })
    expect(answers.filter(({ answer }) => JSON.stringify(answer) === '{"messages":[]}')).toHaveLength(9)
    expect(tools.reports().applied).toEqual(['a', 'b'])
  })

  it('that could not be looked up is not handed out', async () => {
    const guidance = vi.fn(async () => [one]).mockRejectedValueOnce(new Error('no API'))
    const tools = await start({ guidance })
    expect(await refusal(tools, 'guidance', {})).toEqual({ status: 503, code: 'unavailable' })
    expect(tools.reports().applied).toEqual([])
    expect(await call(tools, 'guidance', {})).toMatchObject({ answer: { messages: [one] } })
  })

  it('whose caller is gone is not handed out', async () => {
    const { promise, resolve } = Promise.withResolvers<(typeof one)[]>()
    const guidance = vi.fn(() => promise)
    const tools = await start({ guidance })
    const { socket, closed } = raw(tools, `${head(tools, 'guidance', 'Content-Length: 2')}{}`)
    await until(() => guidance.mock.calls.length === 1)
    socket.destroy()
    await closed
    // By the time that a later call is answered, the server has seen the earlier one's end.
    await call(tools, 'report_status', { status: 'success' })
    resolve([one])
    expect(await call(tools, 'guidance', {})).toMatchObject({ answer: { messages: [one] } })
  })
})

describe('reports', () => {
  it('are collected', async () => {
    const tools = await start()
    const nomination = { kind: 'already_satisfied', summary: 'It does', evidence: 'I ran it' }
    expect(await call(tools, 'report_no_change', nomination)).toMatchObject({
      ...{ status: 200, answer: { status: 'nominated' } },
    })
    expect(
      await call(tools, 'report_status', { status: 'rate_limited', retry_after_secs: 60 }),
    ).toMatchObject({ status: 200, answer: { status: 'recorded' } })
    const usage = { request_id: 'm1', input_tokens: 10, output_tokens: 20, cost_usd: null }
    for (let again = 0; again < 2; again++) {
      expect(await call(tools, 'report_usage', usage)).toMatchObject({
        ...{ status: 200, answer: { status: 'recorded' } },
      })
    }
    expect(tools.reports()).toEqual({
      status: { status: 'rate_limited', reason: null, reset_at: '2030-01-01T00:01:00.000Z' },
      nomination,
      usage: { requests: 1, input_tokens: 10, output_tokens: 20, cost_usd: null, complete: false },
      applied: [],
    })
  })

  it('of an unknown status is refused by field and leaves what was there', async () => {
    const tools = await start()
    await call(tools, 'report_status', { status: 'failed' })
    const { status, answer } = await call(tools, 'report_status', { status: 'fine', extra: 1 })
    expect(status).toBe(422)
    expect(answer).toMatchObject({
      error: { code: 'invalid_request', message: expect.stringContaining('status: ') },
    })
    expect(tools.reports().status).toMatchObject({ status: 'failed' })
  })
})

describe('a caller that is refused', () => {
  it.each([
    ['no token', {}],
    ['another token', { authorization: 'Bearer gh_other' }],
    ['another scheme', { authorization: 'Basic gh_other' }],
  ])('%s, whatever it asks for', async (_, headers) => {
    const tools = await start()
    for (const name of ['ask_user', 'report_status', 'no_such_tool']) {
      expect(await refusal(tools, name, { status: 'failed' }, { headers })).toEqual({
        ...{ status: 401, code: 'unauthenticated' },
      })
    }
    expect(tools.reports().status).toBeNull()
  })

  it('the token of another run', async () => {
    const [tools, other] = [await start(), await start()]
    const headers = { authorization: `Bearer ${other.token}` }
    expect(await refusal(tools, 'guidance', {}, { headers })).toMatchObject({ status: 401 })
  })

  it.each(['', 'no_such_tool', 'ask_user/x', '__proto__', '..%2Fask_user'])('no tool %j', async (name) => {
    expect(await refusal(await start(), name, {})).toEqual({ status: 404, code: 'not_found' })
  })

  it.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('method %s', async (method) => {
    const tools = await start()
    const more = { method, ...(method === 'GET' ? { body: null } : {}) }
    const { status, headers, answer } = await call(tools, 'ask_user', { prompt: 'x' }, more)
    expect(status).toBe(405)
    expect(headers.get('allow')).toBe('POST')
    expect(answer).toMatchObject({ error: { code: 'method_not_allowed' } })
  })

  it.each(['{', 'nonsense', '{"prompt": "x"}}', "{'prompt': 'x'}", '\u0000'])('body %j', async (body) => {
    expect(await refusal(await start(), 'ask_user', body)).toEqual({ status: 400, code: 'invalid_json' })
  })

  it.each(['null', '[]', '1', '""', '{}', '', '['.repeat(30_000) + ']'.repeat(30_000)])(
    'JSON that is not its input: %.20s',
    async (body) => {
      expect(await refusal(await start(), 'ask_user', body)).toEqual({ status: 422, code: 'invalid_request' })
    },
  )

  it('a body of one byte too many', async () => {
    const tools = await start()
    const padded = (bytes: number) => '{"status": "success"}'.padEnd(bytes)
    expect(await refusal(tools, 'report_status', padded(toolLimits.body + 1))).toEqual({
      ...{ status: 413, code: 'payload_too_large' },
    })
    expect(tools.reports().status).toBeNull()
    expect(await call(tools, 'report_status', padded(toolLimits.body))).toMatchObject({ status: 200 })
  })
})

describe('a hostile engine', () => {
  /** So that nothing is cut off for being slow. */
  const patient = { requestMs: 600_000 }
  const works = async (tools: Tools) =>
    expect(await call(tools, 'report_status', { status: 'success' })).toMatchObject({ status: 200 })

  it('that announces a huge body is refused before it sends it', async () => {
    const tools = await start(patient)
    const { closed } = raw(tools, head(tools, 'ask_user', 'Content-Length: 99999999999'))
    expect(await closed).toMatch(/^HTTP\/1\.1 413 .*payload_too_large/s)
    await works(tools)
  })

  it('that sends without end is cut off', async () => {
    const tools = await start(patient)
    const { socket, closed } = raw(tools, head(tools, 'ask_user', 'Transfer-Encoding: chunked'))
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.on('drain', more)
    more()
    await closed
    await works(tools)
  })

  it('that dawdles is cut off, and a question that waits longer is not', async () => {
    const { ask, question } = person()
    const tools = await start({ ask, requestMs: 200 })
    const answer = call(tools, 'ask_user', { prompt: 'x' })
    const { settle } = await question(0)
    const slow = [
      raw(tools, 'POST /report_sta'),
      raw(tools, `${head(tools, 'report_status', 'Content-Length: 100')}{"status": "fai`),
      raw(tools, `${head(tools, 'report_status', 'Transfer-Encoding: chunked')}5\r\n{"sta`),
      raw(tools),
    ]
    await Promise.all(slow.map(({ closed }) => closed))
    expect(tools.reports().status).toBeNull()
    settle({ kind: 'answered', text: 'still here' })
    expect(await answer).toMatchObject({ status: 200, answer: { text: 'still here' } })
  })

  it('that leaves in the middle of a body has reported nothing', async () => {
    const tools = await start()
    const { socket, closed } = raw(
      tools,
      `${head(tools, 'report_status', 'Content-Length: 21')}{"status": "failed"`,
    )
    await new Promise((resolve) => socket.once('connect', resolve))
    socket.end()
    await closed
    await works(tools)
    expect(tools.reports().status).toMatchObject({ status: 'success' })
  })

  it('gets so many connections and no more, and all of them back', async () => {
    const tools = await start(patient)
    const crowd = Array.from({ length: 1000 }, () => raw(tools))
    let closed = 0
    for (const one of crowd)
      one.closed.then(() => {
        closed += 1
      })
    await until(() => closed >= crowd.length - toolLimits.connections)
    expect(crowd.filter(({ socket }) => !socket.destroyed).length).toBeLessThanOrEqual(toolLimits.connections)
    for (const { socket } of crowd) socket.destroy()
    await vi.waitFor(() => works(tools), { timeout: 20_000 })
  })

  it('that sends its next call before the answer is heard once a connection', async () => {
    const tools = await start()
    const one = `${head(tools, 'report_usage', 'Content-Length: 19')}{"request_id": "1"}`
    const { closed } = raw(tools, one + one.replace('"1"', '"2"') + one.replace('"1"', '"3"'))
    expect(await closed).toMatch(/^HTTP\/1\.1 200 /)
    expect(tools.reports().usage).toMatchObject({ requests: 1 })
  })

  it.each([
    ['nonsense', 'nonsense\r\n\r\n'],
    ['CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['no host', 'POST /guidance HTTP/1.1\r\n\r\n'],
    ['a flood of NUL', '\0'.repeat(100_000)],
    ['a flood of headers', `POST /guidance HTTP/1.1\r\nHost: x\r\n${'A: b\r\n'.repeat(10_000)}\r\n`],
  ])('that speaks no proper HTTP is sent away: %s', async (_, text) => {
    const tools = await start()
    expect(await raw(tools, text).closed).not.toContain(' 200 ')
    await works(tools)
  })
})

describe('the end', () => {
  it('withdraws a waiting question and takes no more calls', async () => {
    const { ask, question } = person()
    const tools = await start({ ask })
    const waiting = call(tools, 'ask_user', { prompt: 'x' })
    const refused = expect(waiting).rejects.toThrow()
    const { signal } = await question(0)
    const half = raw(tools, `${head(tools, 'report_status', 'Content-Length: 100')}{"status": "fai`)
    await tools.close()
    expect(signal.aborted).toBe(true)
    await refused
    await half.closed
    await expect(call(tools, 'report_status', { status: 'failed' })).rejects.toThrow()
    expect(tools.reports().status).toBeNull()
    await tools.close()
  })

  it('waits until the question is withdrawn', async () => {
    const withdrawn = vi.fn()
    const asked = Promise.withResolvers<void>()
    const tools = await start({
      ask: async (_, signal) => {
        asked.resolve()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        await readFile(import.meta.filename)
        withdrawn()
        throw new Error('withdrawn')
      },
    })
    const waiting = expect(call(tools, 'ask_user', { prompt: 'x' })).rejects.toThrow()
    await asked.promise
    await tools.close()
    expect(withdrawn).toHaveBeenCalled()
    await waiting
  })

  it('what is still being looked up is not handed out', async () => {
    const { promise, resolve } = Promise.withResolvers<{ id: string; text: string }[]>()
    const guidance = vi.fn(() => promise)
    const tools = await start({ guidance })
    const waiting = expect(call(tools, 'guidance', {})).rejects.toThrow()
    await until(() => guidance.mock.calls.length === 1)
    await tools.close()
    resolve([{ id: 'a', text: 'late' }])
    await waiting
    await promise
    expect(tools.reports().applied).toEqual([])
  })
})

describe('with an engine', () => {
  let root: string
  let tree: string
  beforeEach(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'tools-'))
    tree = path.join(root, 'tree')
    await mkdir(tree)
  })
  afterEach(() => rm(root, { recursive: true, force: true }))

  const prompt = buildPrompt({
    ...{ intent: 'Format it', steering: [], contract: aContract(), iteration: 1, failing: [], tools: true },
  })
  const run = (tools: Tools, command: CommandEngineRun['command'], more: Partial<CommandEngineRun> = {}) =>
    runCommandEngine({
      ...{
        command,
        tree,
        prompt,
        promptFile: path.join(root, 'prompt.md'),
        iteration: 1,
        sessionId: 'ses_1',
      },
      ...{ env: { PATH: process.env.PATH ?? '' }, timeoutMs: 20_000, marker: root, tools },
      outputFile: path.join(root, 'engine.log'),
      ...more,
    })
  const script = async (text: string): Promise<string[]> => {
    const file = path.join(root, 'engine.mjs')
    await writeFile(file, text)
    return [process.execPath, file]
  }

  it('a person’s answer becomes its work', async () => {
    const { ask, question } = person()
    const tools = await start({ ask })
    const running = run(
      tools,
      await script(`
        import { writeFileSync } from 'node:fs'
        const call = async (name, body) => {
          const response = await fetch(process.env.GATEHOUSE_TOOLS_URL + '/' + name, {
            method: 'POST',
            headers: { authorization: 'Bearer ' + process.env.GATEHOUSE_TOOLS_TOKEN },
            body: JSON.stringify(body),
          })
          if (!response.ok) throw new Error(await response.text())
          return response.json()
        }
        const { text } = await call('ask_user', { prompt: 'Tabs or spaces?' })
        writeFileSync('format', text)
        await call('report_usage', { request_id: 'm1', input_tokens: 5, output_tokens: 6, cost_usd: 0.25 })
        await call('report_status', { status: 'success' })
      `),
    )
    const { prompt: asked, settle } = await question(0)
    expect(asked).toBe('Tabs or spaces?')
    settle({ kind: 'answered', text: 'tabs' })
    expect(await running).toMatchObject({ status: 'finished', survivors: 0 })
    expect(await readFile(path.join(tree, 'format'), 'utf8')).toBe('tabs')
    await tools.close()
    expect(tools.reports()).toMatchObject({
      status: { status: 'success' },
      usage: { requests: 1, input_tokens: 5, output_tokens: 6, cost_usd: 0.25, complete: true },
    })
  })

  it('the end of an engine that waits for an answer withdraws its question', async () => {
    const { ask, question } = person()
    const tools = await start({ ask })
    const cancel = new AbortController()
    const running = run(
      tools,
      await script(`
        await fetch(process.env.GATEHOUSE_TOOLS_URL + '/ask_user', {
          method: 'POST',
          headers: { authorization: 'Bearer ' + process.env.GATEHOUSE_TOOLS_TOKEN },
          body: '{"prompt": "Still there?"}',
        })
      `),
      { signal: cancel.signal },
    )
    const { signal } = await question(0)
    cancel.abort()
    expect(await running).toMatchObject({ status: 'cancelled', survivors: 0 })
    await until(() => signal.aborted)
  })

  const curl = spawnSync('curl', ['--version']).status === 0
  it.skipIf(!curl)('the prompt’s example works as it stands, past a proxy', async () => {
    const { ask, question } = person()
    const tools = await start({ ask })
    const example = /^ {4}(curl .*\\\n.*)$/m.exec(prompt)?.[1]
    expect(example).toBeDefined()
    const env = { PATH: process.env.PATH ?? '', http_proxy: 'http://127.0.0.1:1', no_proxy: 'example.com' }
    const running = run(tools, `${example} > answer`, { env })
    const { prompt: asked, settle } = await question(0)
    expect(asked).toBe('Which of the two formats is meant?')
    settle({ kind: 'answered', text: 'the “new” one' })
    expect(await running).toMatchObject({ status: 'finished' })
    expect(JSON.parse(await readFile(path.join(tree, 'answer'), 'utf8'))).toEqual({ text: 'the “new” one' })
  })

  it('a process that served tools ends by itself, whatever was still open', async () => {
    const outcome = await run(
      await start(),
      await script(`
        import { startTools } from ${JSON.stringify(path.resolve('functions/worker/tools.ts'))}
        const asked = Promise.withResolvers()
        const tools = await startTools({
          ask: () => {
            asked.resolve()
            return new Promise(() => {})
          },
          guidance: async () => [],
          journal: { settled: async () => {} },
          now: Date.now,
        })
        const call = (name, body) => fetch(tools.url + '/' + name, {
          method: 'POST', body, headers: { authorization: 'Bearer ' + tools.token },
        })
        await (await call('guidance', '{}')).json()
        const waiting = call('ask_user', '{"prompt": "x"}').catch(() => console.log('cut off'))
        await asked.promise
        await tools.close()
        await waiting
        console.log('closed')
      `),
    )
    expect(outcome).toMatchObject({ status: 'finished', output_head: 'cut off\nclosed\n' })
  })
})
