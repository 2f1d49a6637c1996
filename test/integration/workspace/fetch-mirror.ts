import { fetchMirror } from '../../../lib/workspace/mirror.ts'
import { parseRepository } from '../../../lib/workspace/repository-address.ts'

const [home = '', path = ''] = process.argv.slice(2)
console.log(
  JSON.stringify(await fetchMirror({ home, repository: parseRepository(path, { allowLocal: true }) })),
)
