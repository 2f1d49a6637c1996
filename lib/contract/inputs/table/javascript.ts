import { toolsOf, variables } from './tool.ts'

const shared = ['package.json', '.nvmrc', '.node-version', 'node.config.json', ...variables]

/** Files that a package manager installs from, beside its own settings. */
const npm = ['.npmrc', 'package-lock.json', 'npm-shrinkwrap.json', 'binding.gyp']
const pnpm = ['.npmrc', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', '.pnpmfile.*', 'pnpmfile.*']
const yarn = ['.yarnrc', '.yarnrc.yml', '.yarn/', '.npmrc', 'yarn.lock', '.pnp.*', 'yarn.config.cjs']

/** All that TypeScript's compiler is told by; the files that it is told of may be named anything. */
const typescript = ['tsconfig.json', 'tsconfig.*.json', 'tsconfig-*.json', 'jsconfig.json']
const babel = ['babel.config.*', '.babelrc', '.babelrc.*']
const swc = ['.swcrc']
const vite = ['vite.config.*', 'vitest.config.*', 'vitest.workspace.*', 'vitest.setup.*', 'vitest-setup.*']
const jest = [
  'jest.config.*',
  'jest.setup.*',
  'jest-*.config.*',
  'jest.*.config.*',
  'jest.preset.*',
  'setupTests.*',
]
const required = ['-r', '--require', '--import', '--loader', '--experimental-loader', '--env-file']
const config = ['-c', '--config']

/** What runs JavaScript: package managers, runtimes and test runners. */
export const javascript = toolsOf('javascript', shared, [
  {
    names: ['npm', 'npx', 'npm-run-all', 'run-s', 'run-p', 'nyc', 'c8', 'dotenv', 'cross-env'],
    reads: [...npm, '.nycrc', '.nycrc.*', 'nyc.config.*', '.c8rc', '.c8rc.*'],
    scripts: ['package.json'],
    starts: 'javascript',
    options: ['--userconfig', '--globalconfig', '--script-shell', '--node-options'],
  },
  { names: ['pnpm', 'pnpx'], reads: pnpm, scripts: ['package.json'], starts: 'javascript' },
  { names: ['yarn', 'yarnpkg'], reads: yarn, scripts: ['package.json'], starts: 'javascript' },
  {
    names: ['bun', 'bunx'],
    reads: ['bunfig.toml', 'bun.lock', 'bun.lockb', '.npmrc', ...typescript],
    scripts: ['package.json'],
    starts: 'javascript',
    options: [...config, '--preload', '--env-file'],
  },
  {
    names: ['turbo', 'nx', 'lerna', 'rush', 'rushx', 'wireit', 'moon', 'lage'],
    reads: [
      'turbo.json',
      'turbo.jsonc',
      'nx.json',
      'project.json',
      'lerna.json',
      'rush.json',
      '.moon/',
      'moon.yml',
    ],
    starts: 'javascript',
  },
  { names: ['corepack'], reads: [...npm, ...pnpm, ...yarn], starts: 'javascript' },
  { names: ['node', 'nodejs', 'nodemon'], reads: ['nodemon.json'], options: required },
  {
    names: ['deno'],
    reads: ['deno.json', 'deno.jsonc', 'deno.lock', 'import_map.json', 'import-map.json'],
    options: [...config, '--import-map', '--lock', '--env-file', '--preload'],
  },
  {
    names: ['ts-node', 'ts-node-esm', 'ts-node-dev', 'tsx', 'tsimp'],
    reads: typescript,
    options: [...required, '-P', '--project', '--tsconfig'],
  },
  { names: ['vitest'], reads: [...vite, ...typescript], options: [...config, '-r'] },
  {
    names: ['jest', 'react-scripts', 'craco', 'ts-jest'],
    reads: [...jest, '__mocks__/', ...babel, ...swc, ...typescript, 'craco.config.*', 'config-overrides.js'],
    options: [...config, '--setupFilesAfterEnv', '--globalSetup', '--testRunner'],
  },
  {
    names: ['mocha', '_mocha', 'electron-mocha'],
    reads: ['.mocharc', '.mocharc.*', 'mocha.opts', ...babel, ...typescript],
    options: [...required, ...config, '--file', '--opts'],
  },
  { names: ['ava'], reads: ['ava.config.*'], options: ['--config'] },
  { names: ['tap', 'tape', 'taps'], reads: ['.taprc', '.tap/'], options: required },
  {
    names: ['uvu', 'jasmine', 'karma', 'wtr', 'web-test-runner', 'qunit'],
    reads: ['jasmine.json', 'karma.conf.*', 'web-test-runner.config.*'],
    options: [...required, ...config],
  },
  {
    names: ['playwright'],
    reads: ['playwright.config.*', 'playwright-ct.config.*', ...typescript],
    options: config,
  },
  {
    names: ['cypress'],
    reads: [
      'cypress.config.*',
      'cypress.json',
      'cypress.env.json',
      'cypress/support/',
      'cypress/plugins/',
      ...typescript,
    ],
    options: ['-C', '--config-file'],
  },
  {
    names: ['wdio', 'nightwatch', 'testcafe', 'puppeteer'],
    reads: ['wdio.conf.*', 'nightwatch.conf*', 'nightwatch.json', '.testcaferc.*', '.puppeteerrc*'],
    options: config,
  },
])

/** What builds JavaScript and looks it over. */
export const javascriptBuilds = toolsOf('javascript', shared, [
  {
    names: ['tsc', 'vue-tsc', 'svelte-check', 'tsd', 'typescript', 'attw', 'api-extractor'],
    reads: [...typescript, 'api-extractor.json'],
    options: ['-p', '--project', '--tsconfig', '-b', '--build'],
  },
  {
    names: ['babel', 'babel-node'],
    reads: [...babel, '.babelignore', '.browserslistrc'],
    options: ['--config-file', '--presets', '--plugins'],
  },
  { names: ['swc', 'spack'], reads: [...swc, 'spack.config.*'], options: ['--config-file'] },
  {
    names: ['esbuild', 'tsup', 'tsdown', 'unbuild'],
    reads: ['esbuild.config.*', 'tsup.config.*', 'tsdown.config.*', 'build.config.*', ...typescript],
    options: ['--tsconfig', '--config'],
  },
  {
    names: ['webpack', 'webpack-cli', 'rspack'],
    reads: [
      'webpack.config.*',
      'webpack.*.config.*',
      'webpack.*.js',
      'rspack.config.*',
      ...babel,
      ...typescript,
    ],
    options: config,
  },
  { names: ['vite'], reads: [...vite, ...typescript], options: config },
  {
    names: ['rollup'],
    reads: ['rollup.config.*', ...babel, ...typescript],
    options: [...config, '-p', '--plugin'],
  },
  {
    names: ['parcel', 'gulp', 'grunt', 'next', 'nuxt', 'astro', 'ng', 'storybook', 'svelte-kit', 'remix'],
    reads: [
      '.parcelrc',
      'gulpfile.*',
      'Gruntfile.*',
      'next.config.*',
      'nuxt.config.*',
      'astro.config.*',
      'angular.json',
      '.storybook/',
      'svelte.config.*',
      'remix.config.*',
      'postcss.config.*',
      'tailwind.config.*',
      ...babel,
      ...typescript,
    ],
  },
  {
    names: ['eslint', 'standard', 'xo', 'oxlint', 'tslint', 'jshint'],
    reads: [
      'eslint.config.*',
      '.eslintrc',
      '.eslintrc.*',
      '.eslintignore',
      '.oxlintrc.json',
      'xo.config.*',
      '.xo-config*',
      'tslint.json',
      '.jshintrc',
      ...typescript,
    ],
    options: [...config, '--rulesdir', '--resolve-plugins-relative-to', '--ignore-path', '-f', '--format'],
  },
  {
    names: ['biome', 'rome'],
    reads: [
      'biome.json',
      'biome.jsonc',
      '.biome.json',
      '.biome.jsonc',
      'rome.json',
      '*.grit',
      '.editorconfig',
    ],
    options: ['--config-path'],
  },
  {
    names: ['prettier', 'dprint'],
    reads: [
      '.prettierrc',
      '.prettierrc.*',
      'prettier.config.*',
      '.prettierignore',
      '.editorconfig',
      'dprint.json',
      '.dprint.json',
    ],
    options: [...config, '--ignore-path', '--plugin'],
  },
  {
    names: ['stylelint'],
    reads: ['.stylelintrc', '.stylelintrc.*', 'stylelint.config.*', '.stylelintignore'],
    options: [...config, '--ignore-path', '--custom-syntax'],
  },
  {
    names: [
      'knip',
      'depcheck',
      'madge',
      'depcruise',
      'size-limit',
      'publint',
      'commitlint',
      'lint-staged',
      'cspell',
      'markdownlint',
      'markdownlint-cli2',
    ],
    reads: [
      'knip.*',
      '.knip.*',
      '.depcheckrc*',
      '.madgerc',
      '.dependency-cruiser.*',
      '.size-limit.*',
      'commitlint.config.*',
      '.commitlintrc*',
      '.lintstagedrc*',
      'lint-staged.config.*',
      'cspell.*',
      '.cspell.*',
      '.markdownlint*',
    ],
    options: config,
  },
])
