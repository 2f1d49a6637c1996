import { type Declared, type Detector, firstOf, type RepositoryFiles } from './detector.ts'
import { packageJson } from './draft-package-json.ts'

const declare = (
  commands: string | string[],
  sources: string | string[],
  setup: string[] = [],
): Declared => ({
  commands: [commands].flat(),
  sources: [sources].flat(),
  setup,
})

const whenPresent = (path: string, command: string): Detector => ({
  looksFor: path,
  find: (files) => (files.has(path) ? declare(command, path) : null),
})

const mentions = (files: RepositoryFiles, path: string, pattern: RegExp): boolean =>
  pattern.test(files.read(path) ?? '')

const pythonTest = /^(?:tests?\/(?:.*\/)?)?(?:test_[^/]*|[^/]*_test)\.py$/

const python: Detector = {
  looksFor: 'pytest in pyproject.toml, pytest.ini, setup.cfg or tox.ini, or Python tests',
  find(files) {
    const configured =
      firstOf(files, 'pytest.ini', '.pytest.ini') ??
      ['pyproject.toml', 'setup.cfg', 'tox.ini'].find((path) => mentions(files, path, /\bpytest\b/))
    const source = configured ?? files.list().find((path) => pythonTest.test(path))
    if (source !== undefined) return declare('python3 -m pytest', source)
    return files.has('manage.py') ? declare('python3 manage.py test', 'manage.py') : null
  },
}

const gradle: Detector = {
  looksFor: 'gradlew or build.gradle',
  find(files) {
    const source = firstOf(files, 'gradlew', 'build.gradle', 'build.gradle.kts')
    return source === null ? null : declare(source === 'gradlew' ? './gradlew test' : 'gradle test', source)
  },
}

const maven: Detector = {
  looksFor: 'pom.xml',
  find(files) {
    if (!files.has('pom.xml')) return null
    return files.has('mvnw')
      ? declare('./mvnw --batch-mode test', ['pom.xml', 'mvnw'])
      : declare('mvn --batch-mode test', 'pom.xml')
  },
}

const mix: Detector = {
  looksFor: 'mix.exs',
  find(files) {
    if (!files.has('mix.exs')) return null
    return declare('mix test', 'mix.exs', files.has('mix.lock') ? ['mix deps.get --check-locked'] : [])
  },
}

const composer: Detector = {
  looksFor: 'composer.json with a script test, or phpunit.xml',
  find(files) {
    const setup = files.has('composer.lock') ? ['composer install --no-interaction'] : []
    if (mentions(files, 'composer.json', /"scripts"\s*:\s*\{[^}]*"test"\s*:/)) {
      return declare('composer test', 'composer.json', setup)
    }
    const phpunit = firstOf(files, 'phpunit.xml', 'phpunit.xml.dist')
    return phpunit === null ? null : declare('vendor/bin/phpunit', phpunit, setup)
  },
}

const ruby: Detector = {
  looksFor: 'Gemfile with spec/ or a Rakefile',
  find(files) {
    if (!files.has('Gemfile')) return null
    const setup = files.has('Gemfile.lock') ? ['bundle install'] : []
    const specs = files.has('.rspec') || files.list().some((path) => /^spec\/.*_spec\.rb$/.test(path))
    if (specs) return declare('bundle exec rspec', 'Gemfile', setup)
    return files.has('Rakefile') ? declare('bundle exec rake', ['Gemfile', 'Rakefile'], setup) : null
  },
}

const deno: Detector = {
  looksFor: 'deno.json',
  find(files) {
    const source = firstOf(files, 'deno.json', 'deno.jsonc')
    if (source === null) return null
    const hasTask = mentions(files, source, /"tasks"\s*:\s*\{[^}]*"test"\s*:/)
    return declare(hasTask ? 'deno task test' : 'deno test', source)
  },
}

const dotnet: Detector = {
  looksFor: 'a .NET solution',
  find(files) {
    const source = files.list().find((path) => /^[^/]+\.slnx?$/.test(path))
    return source === undefined ? null : declare('dotnet test', source)
  },
}

/** Every ecosystem that is looked for, in the order in which its checks come. */
export const detectors: readonly Detector[] = [
  packageJson,
  whenPresent('Cargo.toml', 'cargo test'),
  whenPresent('go.mod', 'go test ./...'),
  ...[python, gradle, maven, mix, composer, ruby, deno, dotnet],
  whenPresent('Package.swift', 'swift test'),
]
