import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../repositories.ts'
import type { Start } from './client.ts'

const prelude = `
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
const { GATEHOUSE_TOOLS_URL: url, GATEHOUSE_TOOLS_TOKEN: token } = process.env
const iteration = Number(process.env.GATEHOUSE_ITERATION)
const prompt = readFileSync(process.env.GATEHOUSE_PROMPT_FILE, 'utf8')
const tool = async (name, body = {}) => {
  const answer = await fetch(url + '/' + name, {
    method: 'POST',
    headers: { authorization: 'Bearer ' + token, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: answer.status, ...(await answer.json()) }
}
/** How often this engine has been started in this session, from 1; kept outside of the tree. */
const runs = () => {
  const file = new URL('./runs-' + process.env.GATEHOUSE_SESSION_ID, import.meta.url)
  appendFileSync(file, 'x')
  return readFileSync(file, 'utf8').length
}
const run = runs()
`

/** An engine written in JavaScript, with the tools that Gatehouse gives to engines: `tool`, `prompt`, `iteration`, `run`. */
export const scripted = (body: string): Start['engine_command'] => {
  const file = join(temporaryFolder(), 'engine.mjs')
  writeFileSync(file, `${prelude}\n${body}\n`)
  return [process.execPath, file]
}
