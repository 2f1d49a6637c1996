import { parse } from 'smol-toml'
import { z } from 'zod'

/** Distributions whose module has another name. Of most it is the same, with `_` for `-` and `.`. */
const moduleNames: Record<string, readonly string[]> = {
  attrs: ['attr', 'attrs'],
  beautifulsoup4: ['bs4'],
  djangorestframework: ['rest_framework'],
  'google-api-python-client': ['googleapiclient'],
  'grpcio-tools': ['grpc_tools'],
  grpcio: ['grpc'],
  'msgpack-python': ['msgpack'],
  'mysql-connector-python': ['mysql'],
  mysqlclient: ['MySQLdb'],
  'opencv-python': ['cv2'],
  pillow: ['PIL'],
  protobuf: ['google'],
  'psycopg2-binary': ['psycopg2'],
  pycryptodome: ['Crypto'],
  pygithub: ['github'],
  pyjwt: ['jwt'],
  pymongo: ['pymongo', 'bson', 'gridfs'],
  pyopenssl: ['OpenSSL'],
  pyserial: ['serial'],
  pytest: ['pytest', '_pytest', 'py'],
  'python-dateutil': ['dateutil'],
  'python-dotenv': ['dotenv'],
  'python-jose': ['jose'],
  'python-magic': ['magic'],
  'python-multipart': ['multipart', 'python_multipart'],
  pyyaml: ['yaml'],
  'scikit-image': ['skimage'],
  'scikit-learn': ['sklearn'],
  setuptools: ['setuptools', 'pkg_resources'],
  'typing-extensions': ['typing_extensions'],
}

/** Files at the root of a project that may declare packages, beside `requirements*.txt`. */
export const declaringFiles = ['pyproject.toml', 'Pipfile', 'setup.cfg', 'setup.py']
export const isRequirements = (path: string): boolean =>
  /^(?:requirements|constraints)[^/]*\.(?:txt|in)$|^requirements\/[^/]+\.(?:txt|in)$/.test(path)

const distributionOf = (requirement: string): string | null =>
  /^\s*([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)/.exec(requirement)?.[1] ?? null

const plain = (name: string): string => name.toLowerCase().replaceAll(/[-_.]+/g, '-')

const modulesOf = (name: string): string[] =>
  [...(moduleNames[name] ?? []), name.replaceAll('-', '_')].map((module) => module.toLowerCase())

type Declared = { requirements: string[]; own: string | null }

/** The import names, in lower case, of all packages that a project's files declare; not its own. */
export const declaredModules = (files: ReadonlyMap<string, string>): Set<string> => {
  const all = [...files].map(([path, text]) => declaredIn(path, text))
  const own = new Set(all.flatMap(({ own }) => (own === null ? [] : [plain(own)])))
  const names = all.flatMap(({ requirements }) => requirements.flatMap((one) => distributionOf(one) ?? []))
  return new Set([...new Set(names.map(plain))].filter((name) => !own.has(name)).flatMap(modulesOf))
}

const declaredIn = (path: string, text: string): Declared => {
  if (path === 'pyproject.toml' || path === 'Pipfile') return declaredInToml(text)
  if (path === 'setup.py' || path === 'setup.cfg') return declaredInSetup(text)
  return { requirements: text.split('\n').filter((line) => !/^\s*(?:#|-)/.test(line)), own: null }
}

const nothing: Declared = { requirements: [], own: null }
const list = z.array(z.unknown()).catch([])
const table = z.record(z.string(), z.unknown()).catch({})
const name = z.string().nullable().catch(null)

/** Tables of poetry and pipenv have packages as keys, those of the standards lists of requirements. */
const declaredInToml = (text: string): Declared => {
  let document: Record<string, unknown>
  try {
    document = table.parse(parse(text))
  } catch {
    return nothing
  }
  const project = table.parse(document.project)
  const tool = table.parse(document.tool)
  const poetry = table.parse(tool.poetry)
  const lists = [
    project.dependencies,
    table.parse(document['build-system']).requires,
    ...Object.values(table.parse(project['optional-dependencies'])),
    ...Object.values(table.parse(document['dependency-groups'])),
    ...Object.values(table.parse(table.parse(tool.pdm)['dev-dependencies'])),
    table.parse(tool.uv)['dev-dependencies'],
  ]
  const tables = [
    ...[poetry.dependencies, poetry['dev-dependencies'], document.packages, document['dev-packages']],
    ...Object.values(table.parse(poetry.group)).map((group) => table.parse(group).dependencies),
  ]
  const listed = lists.flatMap((one) => list.parse(one)).filter((one) => typeof one === 'string')
  const keys = tables.flatMap((one) => Object.keys(table.parse(one))).filter((key) => key !== 'python')
  return { requirements: [...listed, ...keys], own: name.parse(project.name ?? poetry.name ?? null) }
}

/** Reads what a setup file requires from its words: lines of setup.cfg, quoted strings of setup.py. */
const declaredInSetup = (text: string): Declared => {
  const own = /(?:^|[\s(,])name\s*=\s*["']?([\w.-]+)/m.exec(text)?.[1] ?? null
  const lists = [...text.matchAll(/requires?\w*\s*=\s*(\[[^\]]*\]|(?:[^\n]*\n(?:[ \t]+[^\n]*\n?)*))/g)]
  const words = lists.flatMap(([, found = '']) =>
    found.startsWith('[')
      ? [...found.matchAll(/["']([^"']+)["']/g)].map(([, one = '']) => one)
      : found.split('\n'),
  )
  return { requirements: words, own }
}
