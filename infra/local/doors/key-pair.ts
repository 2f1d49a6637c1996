import { randomBytes } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import type { ServiceSettings } from '../../../lib/store/clients.ts'

/** What the embedded services know their callers by. */
export const keyPairSchema = z.strictObject({
  accessKeyId: z.string().regex(/^[A-Z0-9]{16,}$/),
  secretAccessKey: z.string().min(32),
})
export type KeyPair = z.infer<typeof keyPairSchema>

/** Writes a file that its owner alone can read, all or nothing. */
export const writePrivate = async (file: string, text: string): Promise<void> => {
  await writeFile(`${file}.new`, text, { mode: 0o600 })
  await rename(`${file}.new`, file)
}

/** The key pair of a home: made at random at the first start, kept in `file`. Throws when the file holds something else. */
export const ensureKeyPair = async (file: string): Promise<KeyPair> => {
  const kept = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return null
  })
  if (kept === null) {
    const made = {
      accessKeyId: `GH${randomBytes(9).toString('hex').toUpperCase()}`,
      secretAccessKey: randomBytes(32).toString('base64url'),
    }
    await writePrivate(file, `${JSON.stringify(made, null, 2)}\n`)
    return made
  }
  try {
    return keyPairSchema.parse(JSON.parse(kept))
  } catch (cause) {
    throw new Error(`${file} holds no key pair; remove it, and the next start makes another`, { cause })
  }
}

/** A configuration of the AWS command line with the profile `gatehouse`: the key pair and where the services are. */
export const commandLineProfile = (keys: KeyPair, endpoints: ServiceSettings): string =>
  [
    '[profile gatehouse]',
    `region = ${endpoints.region}`,
    `aws_access_key_id = ${keys.accessKeyId}`,
    `aws_secret_access_key = ${keys.secretAccessKey}`,
    'services = gatehouse',
    '',
    '[services gatehouse]',
    ...(['dynamodb', 's3', 'states'] as const).flatMap((name) => [
      `${name === 'states' ? 'sfn' : name} =`,
      `  endpoint_url = ${endpoints[name]}`,
    ]),
    '',
  ].join('\n')
