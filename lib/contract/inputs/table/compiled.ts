import { toolsOf } from './tool.ts'

const rustShared = ['rust-toolchain', 'rust-toolchain.toml', '.cargo/']

export const rust = toolsOf('rust', rustShared, [
  {
    names: ['cargo', 'cross', 'nextest', 'cargo-nextest', 'trybuild', 'maturin', 'wasm-pack'],
    reads: [
      'Cargo.toml',
      'Cargo.lock',
      'build.rs',
      '.config/nextest.toml',
      'clippy.toml',
      '.clippy.toml',
      'rustfmt.toml',
      '.rustfmt.toml',
      'Cross.toml',
      'deny.toml',
      'vendor/',
    ],
    options: ['--config', '--manifest-path', '--config-file'],
  },
  { names: ['rustc', 'rustup', 'rustdoc'], reads: [], options: ['--target'] },
  {
    names: ['rustfmt', 'clippy', 'clippy-driver'],
    reads: ['rustfmt.toml', '.rustfmt.toml', 'clippy.toml', '.clippy.toml'],
    options: ['--config-path'],
  },
])

export const go = toolsOf(
  'go',
  ['go.mod', 'go.sum', 'go.work', 'go.work.sum', '.go-version'],
  [
    {
      names: ['go', 'gofmt', 'gotestsum', 'ginkgo', 'staticcheck', 'goimports', 'gopls', 'govulncheck'],
      reads: ['vendor/', 'staticcheck.conf'],
      options: ['-modfile', '-overlay', '-exec', '-toolexec', '-vettool'],
    },
    {
      names: ['golangci-lint', 'golangci', 'revive'],
      reads: [
        '.golangci.yml',
        '.golangci.yaml',
        '.golangci.toml',
        '.golangci.json',
        '.custom-gcl.*',
        'revive.toml',
        'vendor/',
      ],
      options: ['-c', '--config', '-config'],
    },
    {
      names: ['mage', 'goreleaser'],
      reads: ['magefile.go', 'magefiles/', '.goreleaser.*'],
      scripts: ['magefile.go'],
      starts: 'go',
    },
  ],
)

const cmake = [
  'CMakeLists.txt',
  '*.cmake',
  'CMakePresets.json',
  'CMakeUserPresets.json',
  'vcpkg.json',
  'conanfile.*',
]

export const native = toolsOf(
  'native',
  [],
  [
    {
      names: ['cmake', 'ctest', 'cpack', 'ccmake'],
      reads: [...cmake, 'CTestConfig.cmake', 'CTestCustom.*'],
      options: ['-C', '-S', '--preset', '--toolchain', '--script', '-P'],
    },
    {
      names: ['meson'],
      reads: ['meson.build', 'meson.options', 'meson_options.txt', '*.wrap', 'subprojects/'],
      options: ['--native-file', '--cross-file'],
    },
    { names: ['ninja', 'samu'], reads: ['build.ninja', '*.ninja', 'meson.build', ...cmake], options: ['-f'] },
    {
      names: ['bazel', 'bazelisk', 'buck', 'buck2', 'pants', 'plz'],
      reads: [
        'BUILD',
        'BUILD.bazel',
        '*.bzl',
        'WORKSPACE',
        'WORKSPACE.*',
        'MODULE.bazel',
        'MODULE.bazel.lock',
        '.bazelrc',
        '.bazelversion',
        '.bazelignore',
        'tools/bazel',
        '.buckconfig',
        'BUCK',
        'TARGETS',
        'pants.toml',
        '.plzconfig',
      ],
      options: ['--bazelrc', '--build_file'],
    },
    {
      names: ['scons', 'waf', 'xmake', 'zig', 'conan', 'configure', 'autoreconf'],
      reads: [
        'SConstruct',
        'SConscript',
        'wscript',
        'xmake.lua',
        'build.zig',
        'build.zig.zon',
        'conanfile.*',
        'configure',
        'configure.ac',
        'Makefile.am',
        'Makefile.in',
        '*.m4',
      ],
      options: ['-f'],
    },
    {
      names: ['clang-tidy', 'clang-format', 'cppcheck', 'gcovr', 'gcc', 'g++', 'clang', 'clang++', 'cc'],
      reads: ['.clang-tidy', '.clang-format', 'gcovr.cfg', 'compile_commands.json', '.clangd'],
      options: ['--config-file', '-specs', '--config'],
    },
    {
      names: ['swift', 'xcodebuild', 'swiftlint', 'swiftformat', 'swift-test'],
      reads: [
        'Package.swift',
        'Package@*.swift',
        'Package.resolved',
        '.swift-version',
        '*.xcodeproj/',
        '*.xcworkspace/',
        '*.xctestplan',
        '*.xcconfig',
        '.swiftlint.yml',
        '.swiftformat',
        '.swift-format',
        '.swiftpm/',
      ],
      options: ['-xcconfig', '-testPlan', '--config', '--configuration'],
    },
  ],
)

export const dotnet = toolsOf(
  'dotnet',
  ['global.json', 'dotnet-tools.json'],
  [
    {
      names: ['dotnet', 'msbuild', 'nuget', 'vstest', 'nuke', 'cake', 'paket'],
      reads: [
        '*.sln',
        '*.slnx',
        '*.slnf',
        '*.csproj',
        '*.fsproj',
        '*.vbproj',
        '*.props',
        '*.targets',
        '*.rsp',
        'nuget.config',
        'packages.lock.json',
        '*.runsettings',
        '.editorconfig',
        '.globalconfig',
        'xunit.runner.json',
        'testconfig.json',
        'paket.*',
        'build.cake',
        '.config/',
      ],
      options: ['-s', '--settings', '--configfile'],
    },
  ],
)
