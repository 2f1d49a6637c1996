import { readFile, writeFile } from 'node:fs/promises'
import { newSecret } from '../../lib/ids.ts'
import type { Tokens } from '../../lib/store/tokens.ts'

/** The one team of a stack on one machine. */
export const localTeam = 'local'

/** The administrator's token: made at the first start, kept in a file that only its owner can read. */
export const ensureAdminToken = async (file: string, tokens: Tokens): Promise<string> => {
  const kept = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return null
  })
  const secret = kept?.trim() || newSecret()
  if (kept === null) await writeFile(file, `${secret}\n`, { mode: 0o600 })
  await tokens.add(secret, { kind: 'person', team: localTeam, principal: 'admin', role: 'admin' }, null)
  return secret
}
