import { exec } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'
import { checkEnvironment, furnishHome } from '../../../lib/process/check-home.ts'
import { npmRegistrySettings, pipRegistrySettings } from '../../../lib/process/registry-settings.ts'
import { temporaryFolder, writeFiles } from '../../repositories.ts'

vi.setConfig({ testTimeout: 60_000 })

const run = promisify(exec)

test('of an .npmrc only what reaches registries is taken over', () => {
  const taken = [
    'registry=https://npm.example/',
    '@team:registry = https://team.example/',
    '//team.example/:_authToken=secret',
    '"//npm.example/:_password"=x',
    'cafile=/home/ada/ca.pem',
    'https-proxy=http://proxy',
    'strict-ssl=false',
  ]
  const left = [
    ...[
      '; registry=x',
      '# registry=x',
      'node-options=--require=/x',
      'script-shell=/bin/true',
      'ignore-scripts=true',
    ],
    ...[
      'prefix=/x',
      'userconfig=/x',
      'globalconfig=/x',
      'shell=/x',
      'git=/x',
      'registry-x=1',
      'cache=/x',
      'before=2020',
    ],
    ...['//team.example/:tokenHelper=/x', 'node-gyp=/x', '[registry]', 'registry=https://in-a-section/'],
  ]
  const given = [...taken, ...left].join('\r\n').replace('/home/ada', '~')
  expect(npmRegistrySettings(given, '/home/ada')).toBe(taken.map((line) => `${line}\n`).join(''))
  const variable = ['$', '{HOME}'].join('')
  expect(npmRegistrySettings(`cafile=${variable}/ca`, '/home/ada')).toBe('cafile=/home/ada/ca\n')
})

test('of a pip.conf only what reaches indexes is taken over, with the lines that go on with it', () => {
  const text =
    '[global]\nindex-url = https://a\nextra-index-url =\n  https://b\n  https://c\nrequire-virtualenv = true\ntarget = /x\n  y\n'
  expect(pipRegistrySettings(text, '/home/ada')).toBe(
    '[global]\nindex-url = https://a\nextra-index-url =\n  https://b\n  https://c\n',
  )
})

test('checks have the user’s tool chains and none of the folders with settings or unproven packages', () => {
  const userHome = temporaryFolder()
  writeFiles(userHome, { '.rustup/x': '', '.cargo/config.toml': '' })
  const given = {
    PATH: '/bin',
    HOME: userHome,
    CARGO_HOME: '/c',
    GOPATH: '/g',
    PYENV_ROOT: '/p',
    PYTHONUSERBASE: '/u',
  }
  const environment = checkEnvironment(given, { home: '/own', temporary: '/own-tmp', userHome })
  expect(environment).toMatchObject({
    HOME: '/own',
    RUSTUP_HOME: join(userHome, '.rustup'),
    PYENV_ROOT: '/p',
  })
  for (const name of ['CARGO_HOME', 'GOPATH', 'PYTHONUSERBASE', 'DOTNET_ROOT'])
    expect(environment).not.toHaveProperty(name)
  expect(environment.MAVEN_OPTS).toBe('-Duser.home=/own')
})

test('a home holds nothing but what is listed', async () => {
  const [userHome, home] = [temporaryFolder(), temporaryFolder()]
  const files = [
    '.gitconfig',
    '.bashrc',
    '.node_modules/x/index.js',
    '.config/git/config',
    '.m2/settings.xml',
    '.npm/_npx/1/x',
  ]
  writeFiles(userHome, Object.fromEntries(files.map((name) => [name, ''])))
  writeFiles(userHome, { '.npmrc': 'script-shell=/bin/true\n', '.npm/_cacache/index-v5/x': '' })
  await furnishHome(home, userHome)
  expect(readdirSync(home)).toEqual([])
})

test('nothing that lies among the user’s own Python packages is found, since any engine could put it there', async () => {
  const [userHome, home] = [temporaryFolder(), temporaryFolder()]
  writeFiles(userHome, { '.local/lib/python3.12/site-packages/usercustomize.py': '' })
  await furnishHome(home, userHome)
  expect(readdirSync(home)).toEqual([])
})

/** A registry with one package, and what it was asked for. */
const aRegistry = async () => {
  const folder = temporaryFolder()
  writeFiles(folder, {
    'package.json': '{"name":"tiny","version":"1.0.0"}',
    'index.js': 'module.exports = 1\n',
  })
  const { stdout } = await run('npm pack --silent', { cwd: folder })
  const tarball = readFileSync(join(folder, stdout.trim()))
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    const dist = { tarball: `${url}/tiny.tgz`, integrity }
    const versions = { '1.0.0': { name: 'tiny', version: '1.0.0', dist } }
    if (request.url === '/tiny.tgz') response.end(tarball)
    else if (request.url === '/tiny')
      response.end(JSON.stringify({ name: 'tiny', 'dist-tags': { latest: '1.0.0' }, versions }))
    else response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const at = server.address()
  const url = `http://127.0.0.1:${typeof at === 'object' ? at?.port : 0}`
  return { url, downloads: () => asked.filter((path) => path === '/tiny.tgz').length }
}

test('npm takes packages from the user’s store by their hash alone: changed bytes are fetched anew', async () => {
  const registry = await aRegistry()
  const [userHome, home, project] = [temporaryFolder(), temporaryFolder(), temporaryFolder()]
  writeFiles(project, { 'package.json': '{"dependencies":{"tiny":"1.0.0"}}' })
  writeFiles(userHome, { '.npmrc': `registry=${registry.url}\n` })
  const env = { PATH: process.env.PATH ?? '', HOME: userHome }
  const quiet = '--no-audit --no-fund --no-update-notifier'
  await run(`npm install ${quiet}`, { cwd: project, env })
  await furnishHome(home, userHome)
  const own = checkEnvironment(env, { home, temporary: home, userHome })
  const ci = async () => {
    rmSync(join(project, 'node_modules'), { recursive: true })
    await run(`npm ci ${quiet}`, { cwd: project, env: own })
    return readFileSync(join(project, 'node_modules', 'tiny', 'index.js'), 'utf8')
  }
  expect(await ci()).toBe('module.exports = 1\n')
  expect(registry.downloads()).toBe(1)
  const store = join(userHome, '.npm', '_cacache', 'content-v2')
  for (const entry of readdirSync(store, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) writeFileSync(join(entry.parentPath, entry.name), 'planted')
  expect(await ci()).toBe('module.exports = 1\n')
  expect(registry.downloads()).toBe(2)
})
