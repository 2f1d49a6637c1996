import { existsSync, statSync } from 'node:fs'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { npmRegistrySettings, pipRegistrySettings } from './registry-settings.ts'
import { homeVariables, notForChecks, npmContent, pipFiles, toolChains } from './user-surroundings.ts'

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

const copySettings = async (from: string, to: string, pick: (text: string) => string): Promise<void> => {
  const text = await readFile(from, 'utf8').catch(() => null)
  const picked = text === null ? '' : pick(text)
  if (picked === '') return
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  await writeFile(to, picked, { mode: 0o600 })
}

/** Puts into an empty home what setups and checks are to see of the user's (user-surroundings.ts). */
export const furnishHome = async (home: string, userHome: string): Promise<void> => {
  await copySettings(join(userHome, '.npmrc'), join(home, '.npmrc'), (text) =>
    npmRegistrySettings(text, userHome),
  )
  for (const file of pipFiles)
    await copySettings(join(userHome, file), join(home, file), (text) => pipRegistrySettings(text, userHome))
  const content = join(userHome, npmContent)
  if (!isFolder(content)) return
  await mkdir(dirname(join(home, npmContent)), { recursive: true, mode: 0o700 })
  await symlink(content, join(home, npmContent))
}

/** The environment of setups and checks: that of any child, with a home of their own and the user's tool chains. */
export const checkEnvironment = (
  env: Readonly<Record<string, string>>,
  places: { home: string; temporary: string; userHome: string },
): Record<string, string> => {
  const environment: Record<string, string> = { ...env, HOME: places.home, TMPDIR: places.temporary }
  for (const name of notForChecks) delete environment[name]
  for (const [name, value] of Object.entries(homeVariables))
    environment[name] = value.replaceAll('{}', places.home)
  for (const { variable, below } of toolChains) {
    if (environment[variable] !== undefined || below === undefined) continue
    const folder = join(places.userHome, below)
    if (existsSync(folder)) environment[variable] = folder
  }
  return environment
}
