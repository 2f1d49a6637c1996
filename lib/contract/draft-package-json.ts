import { z } from 'zod'
import type { Declared, Detector, RepositoryFiles } from './detector.ts'

const dependencies = z.record(z.string(), z.unknown()).optional()

/** The members of package.json that say how a package is tested; anything else may stand beside them. */
const packageSchema = z.object({
  scripts: z.record(z.string(), z.unknown()).optional(),
  dependencies,
  devDependencies: dependencies,
  optionalDependencies: dependencies,
  workspaces: z.unknown().optional(),
  packageManager: z.string().optional(),
})

type Package = z.infer<typeof packageSchema>
type Manager = { run: (script: string) => string; setup: string; lock: string }

/** What `npm init` writes when nobody said how to test. */
const initPlaceholder = /^\s*echo\s+(["']?)Error: no test specified\1\s*&&\s*exit 1\s*$/

const substitutes = ['check', 'lint', 'typecheck', 'type-check', 'types', 'build']

/** package.json: the script test, else those of check, lint, typecheck and build that there are. */
export const packageJson: Detector = {
  looksFor: 'package.json with a script test, check, lint, typecheck or build',
  find(files) {
    const manifest = parsePackage(files.read('package.json'))
    if (manifest === null) return null
    const names = hasScript(manifest, 'test')
      ? ['test']
      : substitutes.filter((name) => hasScript(manifest, name))
    return names.length === 0 ? null : declared(files, manifest, names)
  },
}

const declared = (files: RepositoryFiles, manifest: Package, names: string[]): Declared => {
  const locked = managers(manifest).find(({ lock }) => files.has(lock))
  const run = locked?.run ?? named(manifest)
  const needsSetup = locked !== undefined && hasDependencies(manifest)
  return {
    commands: names.map(run),
    setup: needsSetup ? [locked.setup] : [],
    sources: ['package.json', ...(locked === undefined ? [] : [locked.lock])],
  }
}

const npm = (script: string): string => (script === 'test' ? 'npm test' : `npm run ${script}`)
const pnpm = (script: string): string => (script === 'test' ? 'pnpm test' : `pnpm run ${script}`)
const yarn = (script: string): string => (script === 'test' ? 'yarn test' : `yarn run ${script}`)
/** `bun test` is Bun's own runner; the script needs `run`. */
const bun = (script: string): string => `bun run ${script}`

const managers = (manifest: Package): Manager[] => {
  const modernYarn = /^yarn@(?:[2-9]|\d\d)/.test(manifest.packageManager ?? '')
  return [
    { run: pnpm, setup: 'pnpm install --frozen-lockfile', lock: 'pnpm-lock.yaml' },
    {
      run: yarn,
      setup: `yarn install ${modernYarn ? '--immutable' : '--frozen-lockfile'}`,
      lock: 'yarn.lock',
    },
    { run: bun, setup: 'bun install --frozen-lockfile', lock: 'bun.lock' },
    { run: bun, setup: 'bun install --frozen-lockfile', lock: 'bun.lockb' },
    { run: npm, setup: 'npm ci', lock: 'package-lock.json' },
    { run: npm, setup: 'npm ci', lock: 'npm-shrinkwrap.json' },
  ]
}

const named = (manifest: Package): ((script: string) => string) => {
  const name = manifest.packageManager?.split('@')[0]
  return name === 'pnpm' ? pnpm : name === 'yarn' ? yarn : name === 'bun' ? bun : npm
}

const hasScript = (manifest: Package, name: string): boolean => {
  const script = manifest.scripts?.[name]
  return typeof script === 'string' && script.trim() !== '' && !initPlaceholder.test(script)
}

const hasDependencies = (manifest: Package): boolean =>
  manifest.workspaces !== undefined ||
  [manifest.dependencies, manifest.devDependencies, manifest.optionalDependencies].some(
    (group) => group !== undefined && Object.keys(group).length > 0,
  )

const parsePackage = (text: string | null): Package | null => {
  if (text === null) return null
  try {
    return packageSchema.parse(JSON.parse(text))
  } catch {
    return null
  }
}
