import { existsSync } from 'node:fs'
import path from 'node:path'

const folders = ['', 'src', 'lib']
const endings = ['', '.py', '.js', '.cjs', '.mjs', '.ts', '.rb', '.pm']

/** Whether a tree holds something at its root, or where sources usually are, that the first part of a module's name may mean. */
export const isOwnModule =
  (tree: string) =>
  (module: string): boolean => {
    const [first = ''] = module.split(/[./]|::/)
    return (
      first !== '' &&
      folders.some((folder) =>
        endings.some((ending) => existsSync(path.join(tree, folder, `${first}${ending}`))),
      )
    )
  }
