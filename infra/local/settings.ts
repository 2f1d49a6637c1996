import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { z } from 'zod'

const projectRoot = resolve(import.meta.dirname, '../..')

/** The environment of `npm start`. */
const environmentSchema = z.object({
  PORT: z.coerce.number().int().min(0).max(65_535).default(8787),
  GATEHOUSE_HOME: z.string().min(1).optional(),
  XDG_STATE_HOME: z.string().optional(),
  GATEHOUSE_DEMO: z.enum(['0', '1']).default('1'),
  GATEHOUSE_CONCURRENCY: z.coerce.number().int().min(1).max(100).default(8),
})

export type LocalSettings = { port: number; home: string; demo: boolean; concurrency: number }

/** A path that is not absolute is no answer, says the specification of these variables. */
const stateFolder = (named: string | undefined): string =>
  named !== undefined && isAbsolute(named) ? named : join(homedir(), '.local', 'state')

/** The default home. It was in the project once: a folder that is still there is never passed over in silence. */
const defaultHome = (stateHome: string | undefined, project: string): string => {
  const home = join(stateFolder(stateHome), 'gatehouse')
  const before = join(project, '.gatehouse')
  if (!existsSync(join(before, 'admin-token'))) return home
  throw new Error(
    `the data folder is ${home} now, and there is one at its old place, ${before}.\n` +
      `Either move it: mkdir -p '${stateFolder(stateHome)}' && mv '${before}' '${home}'\n` +
      `or go on where it is: GATEHOUSE_HOME='${before}' npm start`,
  )
}

/** Reads the settings; throws an Error whose message says which variable is wrong. */
export const localSettings = (env: NodeJS.ProcessEnv, project = projectRoot): LocalSettings => {
  const parsed = environmentSchema.safeParse(env)
  if (!parsed.success) {
    throw new Error(
      parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'),
    )
  }
  const { PORT, GATEHOUSE_HOME, XDG_STATE_HOME, GATEHOUSE_DEMO, GATEHOUSE_CONCURRENCY } = parsed.data
  return {
    port: PORT,
    home: GATEHOUSE_HOME === undefined ? defaultHome(XDG_STATE_HOME, project) : resolve(GATEHOUSE_HOME),
    demo: GATEHOUSE_DEMO === '1',
    concurrency: GATEHOUSE_CONCURRENCY,
  }
}

export { projectRoot }
