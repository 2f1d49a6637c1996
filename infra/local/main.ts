import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { runDemo } from './demo.ts'
import { localSettings } from './settings.ts'
import { startStack } from './stack.ts'
import { surviveUnforeseen } from './storage/unforeseen.ts'

const print = (text: string) => process.stdout.write(`${text}\n`)

const start = async () => {
  const settings = localSettings(process.env)
  const isNew = !existsSync(join(settings.home, 'admin-token'))
  surviveUnforeseen((line) => process.stderr.write(`${line}\n`))
  print(`Starting Gatehouse; its data folder is ${settings.home} …`)
  const stack = await startStack({ ...settings, log: (line) => process.stderr.write(`${line}\n`) })
  const stopping = new AbortController()
  const stop = (signal: NodeJS.Signals) => {
    if (stopping.signal.aborted) process.exit(130)
    stopping.abort()
    print(`\n${signal}: stopping; sessions go on at the next start.`)
    stack.close().then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`${error}\n`)
        process.exit(1)
      },
    )
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)

  const tokenFile = join(settings.home, 'admin-token')
  print(`Gatehouse answers at ${stack.url} (API reference: ${stack.url}/docs)`)
  for (const { folder, why } of stack.runs.refused) print(`Sessions do not work in ${folder}: ${why}.`)
  if (stack.runs.refused.length > 0) print(`They work in ${stack.runs.folder}.`)
  if (stack.runs.cleared.length > 0) print(`Left over there, and removed: ${stack.runs.cleared.join(', ')}.`)
  print(`Admin token: in ${tokenFile}`)
  print('Start a session on a repository of your own; paste this and fill in the three places in capitals:\n')
  print(
    `  curl -sS ${stack.url}/v1/sessions -H "Authorization: Bearer $(cat ${tokenFile})" -H 'Content-Type: application/json' \\`,
  )
  print(
    `    -d '{"repo":"/PATH/TO/REPOSITORY","intent":"WHAT SHOULD BE TRUE","engine_command":"COMMAND THAT EDITS THE FILES"}'\n`,
  )
  if (isNew && settings.demo)
    await runDemo(stack, { home: settings.home, tokenFile, print, signal: stopping.signal })
  print('Ctrl-C stops everything.')
}

start().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error)
  const hint = message.includes('EADDRINUSE') ? '; set PORT to another, or to 0 for any that is free' : ''
  process.stderr.write(`Gatehouse could not start: ${message}${hint}\n`)
  process.exit(1)
})
