/** Name and password (or token) for an https remote; reach only the git processes of one remote operation. */
export type Credentials = { username: string; password: string }

/**
 * Configuration of every git process of ours. It is given at command scope, which outranks any repository's own
 * config, so a planted `core.fsmonitor` or `core.hooksPath` has no effect wherever git runs.
 */
const settings: [string, string][] = [
  ['safe.directory', '*'],
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.untrackedCache', 'false'],
  ['core.excludesFile', '/dev/null'],
  ['core.attributesFile', '/dev/null'],
  ['core.autocrlf', 'false'],
  ['core.quotePath', 'false'],
  ['core.logAllRefUpdates', 'false'],
  ['core.pager', 'cat'],
  ['core.editor', 'false'],
  ['core.alternateRefsCommand', 'true'],
  ['commit.gpgSign', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['receive.autogc', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['push.recurseSubmodules', 'no'],
  ['submodule.recurse', 'false'],
  ['http.followRedirects', 'initial'],
  ['protocol.allow', 'never'],
  ['protocol.https.allow', 'always'],
  ['protocol.ssh.allow', 'always'],
  ['protocol.file.allow', 'always'],
  ['user.name', 'Gatehouse'],
  ['user.email', 'gatehouse@localhost'],
  ['credential.helper', ''],
]

/** Answers only `get`, from variables that this one process tree has. */
const credentialHelper =
  '!f() { test "$1" = get || exit 0; printf "username=%s\\npassword=%s\\n"' +
  ' "$GATEHOUSE_GIT_USERNAME" "$GATEHOUSE_GIT_PASSWORD"; }; f'

/** What a host needs to reach a remote at all: its agent, proxy and certificate authorities. */
const networkVariables = [
  'SSH_AUTH_SOCK',
  'HTTPS_PROXY',
  'https_proxy',
  'NO_PROXY',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'GIT_SSL_CAINFO',
]

const configVariables = (entries: [string, string][]): Record<string, string> => {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(entries.length) }
  entries.forEach(([key, value], index) => {
    variables[`GIT_CONFIG_KEY_${index}`] = key
    variables[`GIT_CONFIG_VALUE_${index}`] = value
  })
  return variables
}

const local: Record<string, string> = {
  PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
  HOME: '/dev/null',
  LANG: 'C',
  LC_ALL: 'C',
  TZ: 'UTC',
  // glibc otherwise gives memory back after every object, which costs more than the objects where faults are dear.
  MALLOC_TRIM_THRESHOLD_: '134217728',
  MALLOC_MMAP_THRESHOLD_: '134217728',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_NO_LAZY_FETCH: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_ADVICE: '0',
  GIT_ALLOW_PROTOCOL: 'https:ssh:file',
  ...configVariables(settings),
}

/** The whole environment of a git process that touches no network. */
export const localEnvironment = (): Record<string, string> => local

/** The whole environment of a git process that talks to `url`; credentials are offered to that host alone. */
export const remoteEnvironment = (
  url: string,
  credentials: Credentials | undefined,
): Record<string, string> => {
  const environment: Record<string, string> = {
    ...local,
    GIT_SSH_COMMAND: 'ssh -oBatchMode=yes',
    GIT_HTTP_LOW_SPEED_LIMIT: '1000',
    GIT_HTTP_LOW_SPEED_TIME: '60',
  }
  for (const name of networkVariables) {
    const value = process.env[name]
    if (value !== undefined) environment[name] = value
  }
  if (credentials === undefined || !url.startsWith('https:')) return environment
  const scope = `credential.${new URL(url).origin}.helper`
  return {
    ...environment,
    ...configVariables([...settings, [scope, credentialHelper]]),
    GATEHOUSE_GIT_USERNAME: credentials.username,
    GATEHOUSE_GIT_PASSWORD: credentials.password,
  }
}
