import { chmod, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Makes the data folder where it is missing, and closes it to everybody but its owner before anything is put in it. */
export const openHome = async (home: string): Promise<void> => {
  await mkdir(home, { recursive: true, mode: 0o700 })
  await chmod(home, 0o700)
  // Made here, since whoever makes them later does so with the rights that any folder gets.
  for (const name of ['worker', 'logs', 'compile-cache'])
    await mkdir(join(home, name), { recursive: true, mode: 0o700 })
}

/** Takes from all that lies in the data folder itself the rights of others, also from what an older start left. */
export const closeHome = async (home: string): Promise<void> => {
  for (const entry of await readdir(home, { withFileTypes: true })) {
    if (entry.isDirectory()) await chmod(join(home, entry.name), 0o700)
    else if (entry.isFile()) await chmod(join(home, entry.name), 0o600)
  }
}
