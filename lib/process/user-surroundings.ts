/**
 * What setups and checks see of the user whose machine they run on; nothing else of the user's home reaches them. It is the
 * same for the baseline, the worktree and the clean checkout. Engines are no part of this: they have the user's home.
 */

/** Tool chains that are found by a variable: where it is not set, what stands at the usual place below the user's home. */
export const toolChains: readonly { variable: string; below?: string }[] = [
  { variable: 'RUSTUP_HOME', below: '.rustup' },
  { variable: 'GOROOT' },
  { variable: 'JAVA_HOME' },
  { variable: 'SDKMAN_DIR', below: '.sdkman' },
  { variable: 'DOTNET_ROOT', below: '.dotnet' },
  { variable: 'PYENV_ROOT', below: '.pyenv' },
  { variable: 'RBENV_ROOT', below: '.rbenv' },
  { variable: 'NODENV_ROOT', below: '.nodenv' },
  { variable: 'GOENV_ROOT', below: '.goenv' },
  { variable: 'JENV_ROOT', below: '.jenv' },
  { variable: 'NVM_DIR', below: '.nvm' },
  { variable: 'VOLTA_HOME', below: '.volta' },
  { variable: 'ASDF_DATA_DIR', below: '.asdf' },
  { variable: 'MISE_DATA_DIR', below: '.local/share/mise' },
  { variable: 'OPAMROOT', below: '.opam' },
  { variable: 'ANDROID_HOME' },
  // Browsers that were installed for tests.
  { variable: 'PLAYWRIGHT_BROWSERS_PATH', below: '.cache/ms-playwright' },
  { variable: 'PUPPETEER_CACHE_DIR', below: '.cache/puppeteer' },
  { variable: 'CYPRESS_CACHE_FOLDER', below: '.cache/Cypress' },
]

/**
 * Variables that children have and setups and checks have not: these folders hold settings, and packages that nobody compares
 * with their hash again before they are used.
 */
export const notForChecks: readonly string[] = ['CARGO_HOME', 'GOPATH', 'PYTHONUSERBASE']

/** Settings of npm by which a registry is reached; never one that names a program, a file to load or a script's shell. */
export const isNpmRegistrySetting = (key: string): boolean =>
  /^(?:registry|ca|ca\[\]|cafile|proxy|https?-proxy|noproxy|strict-ssl|always-auth)$/.test(key) ||
  /^@[^:\s]+:registry$/.test(key) ||
  /^\/\/\S+:(?:_authToken|_auth|username|_password|email|always-auth|certfile|keyfile|cafile)$/.test(key)

/** The same for pip. */
export const isPipRegistrySetting = (key: string): boolean =>
  /^(?:index-url|extra-index-url|trusted-host|cert|client-cert|proxy)$/.test(key.replaceAll('_', '-'))

/** Where pip reads a user's settings, the later one wins; below the home. */
export const pipFiles: readonly string[] = ['.pip/pip.conf', '.config/pip/pip.conf']

/**
 * npm's store of packages by the hash of their bytes, which npm compares on each read. Its index, which says what a name
 * stands for, is not shared.
 */
export const npmContent = '.npm/_cacache/content-v2'

/**
 * Programs of the Java world ask the system and not HOME where the user's home is; each is told by its own variable.
 * `{}` stands for the home.
 */
export const homeVariables: Readonly<Record<string, string>> = {
  MAVEN_OPTS: '-Duser.home={}',
  SBT_OPTS: '-Duser.home={}',
  GRADLE_OPTS: '-Duser.home={}',
  GRADLE_USER_HOME: '{}/.gradle',
}
