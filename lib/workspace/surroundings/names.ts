/**
 * Every name that some tool looks for in the folders above the one it works in. A false alarm costs another place for
 * the runs; a miss costs a verdict. `Makefile` and the like, which are read in the working folder only, are not here.
 */
const literal = [
  // Version control, and what searches read of it.
  ...['.git', '.gitattributes', '.gitignore', '.gitmodules', '.hg', '.svn', '.jj', '.bzr', '.fslckout'],
  ...['.ignore', '.rgignore', '.fdignore', '.watchmanconfig', '.editorconfig', '.pre-commit-config.yaml'],
  // Node and its package managers.
  ...['package.json', 'package.yaml', 'node_modules', '.npmrc', '.pnpmfile.cjs'],
  ...['package-lock.json', 'npm-shrinkwrap.json', 'yarn.lock', 'pnpm-lock.yaml', 'bun.lock', 'bun.lockb'],
  ...['pnpm-workspace.yaml', '.yarn', '.yarnrc', '.yarnrc.yml', '.pnp.cjs', '.pnp.js', '.pnp.loader.mjs'],
  ...['bunfig.toml', '.bunfig.toml', 'deno.json', 'deno.jsonc', 'deno.lock', 'import_map.json', 'jsr.json'],
  ...['lerna.json', 'nx.json', 'turbo.json', 'turbo.jsonc', 'rush.json', 'angular.json', 'workspace.json'],
  ...['jsconfig.json', 'tslint.json', 'biome.json', 'biome.jsonc', '.biome.json', '.biome.jsonc'],
  ...['dprint.json', 'dprint.jsonc', '.dprint.json', '.dprint.jsonc', 'wrangler.toml'],
  ...['wrangler.json', 'wrangler.jsonc', 'firebase.json', 'vercel.json', 'sfdx-project.json'],
  ...['.eslintignore', '.prettierignore', '.stylelintignore', 'truffle-config.js', 'foundry.toml'],
  ...['Gruntfile.js', 'gruntfile.js', 'Gulpfile.js', 'gulpfile.js', 'Jakefile', 'Jakefile.js'],
  // Python.
  ...['pyproject.toml', 'setup.cfg', 'setup.py', 'tox.ini', 'pytest.ini', '.pytest.ini', 'pytest.toml'],
  ...['.pytest.toml', 'conftest.py', '__init__.py', 'pyvenv.cfg', '.venv', 'Pipfile', 'poetry.toml'],
  ...['uv.toml', 'uv.lock', 'ruff.toml', '.ruff.toml', 'mypy.ini', '.mypy.ini', 'pyrightconfig.json'],
  ...['pylintrc', 'pylintrc.toml', '.pylintrc.toml', '.flake8', '.isort.cfg', '.style.yapf', '.coveragerc'],
  ...['ty.toml', 'pyrefly.toml', 'pixi.toml', 'pants.toml', 'BUILD_ROOT', '.env', '.envrc', '.sqlfluff'],
  // Rust, Go, Zig, Swift, C and C++.
  ...['Cargo.toml', 'Cargo.lock', '.cargo/config', '.cargo/config.toml', 'rust-toolchain'],
  ...['rust-toolchain.toml', 'rustfmt.toml', '.rustfmt.toml', 'clippy.toml', '.clippy.toml', 'deny.toml'],
  ...['.config/nextest.toml', 'go.mod', 'go.work', 'build.zig', 'build.zig.zon', 'Package.swift'],
  ...['.swiftformat', '.swiftlint.yml', '.clang-format', '_clang-format', '.clang-tidy', '.clangd'],
  ...['compile_commands.json', 'compile_flags.txt', 'vcpkg.json', 'vcpkg-configuration.json', 'xmake.lua'],
  ...['WORKSPACE', 'WORKSPACE.bazel', 'WORKSPACE.bzlmod', 'MODULE.bazel', 'REPO.bazel', '.bazelversion'],
  ...['.buckconfig', '.buckroot', 'buf.yaml', 'buf.work.yaml'],
  // Java and its kin, .NET.
  ...['.mvn', 'pom.xml', 'settings.gradle', 'settings.gradle.kts', 'project.clj', '.scalafmt.conf'],
  ...['global.json', 'nuget.config', 'NuGet.config', 'NuGet.Config', '.globalconfig'],
  ...['Directory.Build.props', 'Directory.Build.targets', 'Directory.Build.rsp', 'Directory.Packages.props'],
  ...['.config/dotnet-tools.json', 'dotnet-tools.json', 'paket.dependencies'],
  // Ruby, PHP, Elixir, Haskell, OCaml, Dart, Julia, Nim, Lua, Elm and others.
  ...['Gemfile', 'gems.rb', '.bundle/config', 'Rakefile', 'rakefile', 'Rakefile.rb', 'rakefile.rb'],
  ...['.rubocop.yml', '.rspec', 'composer.json', 'mix.exs', '.formatter.exs', '.credo.exs', 'rebar.config'],
  ...['stack.yaml', 'cabal.project', 'hie.yaml', 'fourmolu.yaml', 'dune-project', 'dune-workspace'],
  ...['.ocamlformat', 'pubspec.yaml', 'analysis_options.yaml', 'Project.toml', 'JuliaProject.toml'],
  ...['Manifest.toml', '.JuliaFormatter.toml', 'nim.cfg', 'config.nims', 'gleam.toml', 'elm.json'],
  ...['rescript.json', 'bsconfig.json', 'spago.yaml', 'selene.toml', 'stylua.toml', '.stylua.toml'],
  // Which version of a tool is meant.
  ...['.tool-versions', 'mise.toml', '.mise.toml', 'mise.local.toml', '.mise', '.config/mise.toml'],
  ...['.config/mise', '.nvmrc', '.node-version', '.python-version', '.ruby-version', '.java-version'],
  ...['.go-version', '.php-version', '.swift-version', '.terraform-version', '.sdkmanrc', '.rtx.toml'],
  // Task runners and containers.
  ...['justfile', 'Justfile', '.justfile', 'Taskfile.yml', 'Taskfile.yaml', 'taskfile.yml', 'taskfile.yaml'],
  ...['Tiltfile', 'Vagrantfile', 'compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'],
  ...['flake.nix', 'devbox.json', '.tflint.hcl', '.yamllint', '.yamllint.yml', '.yamllint.yaml'],
] as const

const patterns = [
  // vite.config.ts, eslint.config.mjs, babel.config.json and their kind.
  /^[^.].*\.(?:config|workspace)\.(?:[cm]?[jt]sx?|json[c5]?|ya?ml|toml)$/i,
  /^[tj]sconfig(?:\..+)?\.json$/i,
  /^\.[\w-]+rc\.(?:[cm]?[jt]s|json[c5]?|ya?ml|toml)$/i,
  // The same without an ending, for the tools that look upwards; a login shell's or an editor's own are none.
  /^\.(?:babel|eslint|prettier|stylelint|postcss|browserslist|mocha|nyc|c8|swc|tap|jshint|jscs|parcel)rc$/i,
  /^\.(?:commitlint|lintstaged|release|graphql|oxlint|oxfmt|markdownlint|remark|pylint|shellcheck)rc$/i,
  /^\.(?:luacheck|codespell|sentrycli|perlcritic|bazel|hadolint|xo-config)(?:rc)?$/i,
  /^\.golangci\.(?:ya?ml|toml|json)$/i,
  /^(?:gulpfile|gruntfile|jakefile)\..+$/i,
]

const single = new Set<string>(literal.filter((name) => !name.includes('/')))

/** Names of files that count where the folder that holds them does not: `.cargo` itself is in every Rust user's home. */
export const nestedNames: readonly string[] = literal.filter((name) => name.includes('/'))

/** The names that can be asked for one by one, of a folder whose content can't be listed. */
export const singleNames: readonly string[] = [...single]

/** Whether a tool that works below a folder would find an entry of this name in it. */
export const isLookedUp = (name: string): boolean =>
  single.has(name) || patterns.some((pattern) => pattern.test(name))
