import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { withLifecycle } from './diagram.ts'

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const readme = join(import.meta.dirname, '../session/README.md')
const before = readFileSync(readme, 'utf8')
const after = withLifecycle(before)

if (before === after) {
  process.stdout.write('lib/session/README.md shows the lifecycle as it is\n')
} else if (values.check) {
  process.stderr.write('lib/session/README.md shows an older lifecycle: run npm run diagram\n')
  process.exitCode = 1
} else {
  writeFileSync(readme, after)
  process.stdout.write('lib/session/README.md: the lifecycle was written\n')
}
