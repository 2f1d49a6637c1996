import path from 'node:path'
import { notForChecks, toolChains } from './user-surroundings.ts'

const kept = new Set<string>([
  ...['HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'TZ', 'TMPDIR'],
  ...[
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'NO_PROXY',
    'ALL_PROXY',
    'http_proxy',
    'https_proxy',
    'no_proxy',
    'all_proxy',
  ],
  ...['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'],
  ...['GIT_SSL_CAINFO'],
  // Where a tool chain was installed: without these, one outside its default place doesn't start.
  ...toolChains.map(({ variable }) => variable),
  ...notForChecks,
])

const fallbackPath = '/usr/local/bin:/usr/bin:/bin'

/**
 * The environment of a child: what an ordinary command needs out of `base`, `TERM=dumb`, `CI=true`, and then
 * `extra`. All else stays behind: credentials, variables of Gatehouse, npm and git. From PATH go the tools of
 * our own project at `projectRoot` and every entry that is empty or relative, which would look into the tree
 * that the child works on.
 */
export const childEnvironment = (
  base: NodeJS.ProcessEnv,
  extra: Readonly<Record<string, string>>,
  projectRoot: string,
): Record<string, string> => {
  const environment: Record<string, string> = {}
  for (const [name, value] of Object.entries(base)) {
    if (value !== undefined && (kept.has(name) || name.startsWith('LC_'))) environment[name] = value
  }
  return {
    ...environment,
    ...{ PATH: foreignPath(base.PATH ?? '', projectRoot), TERM: 'dumb', CI: 'true' },
    ...extra,
  }
}

/** PATH without our own tools; npm puts those of every directory above the project there as well. */
const foreignPath = (value: string, projectRoot: string): string => {
  const entries = value
    .split(path.delimiter)
    .filter((entry) => path.isAbsolute(entry) && !isOwnTool(path.normalize(entry), path.resolve(projectRoot)))
  return entries.length === 0 ? fallbackPath : entries.join(path.delimiter)
}

const isOwnTool = (entry: string, projectRoot: string): boolean => {
  const modules = path.join(projectRoot, 'node_modules')
  if (entry === modules || entry.startsWith(modules + path.sep)) return true
  if (entry.endsWith(path.join('@npmcli', 'run-script', 'lib', 'node-gyp-bin'))) return true
  // Where npx puts what it was asked for; we may have been started by it.
  if (/[/\\]_npx[/\\][^/\\]+[/\\]node_modules[/\\]\.bin$/.test(entry)) return true
  const bin = path.join('node_modules', '.bin')
  if (!entry.endsWith(path.sep + bin)) return false
  const owner = entry.slice(0, -bin.length)
  return `${projectRoot}${path.sep}`.startsWith(owner)
}
