import { toolsOf } from './tool.ts'

const shared = ['.java-version', '.sdkmanrc', '.jvmopts', '.jvmrc']

export const jvm = toolsOf('jvm', shared, [
  {
    names: ['gradle', 'gradlew', 'gw'],
    reads: [
      '*.gradle',
      '*.gradle.kts',
      'gradle/',
      'gradlew',
      'gradlew.bat',
      'gradle.properties',
      'gradle.lockfile',
      '*.lockfile',
      'buildSrc/',
      'local.properties',
      'libs.versions.toml',
    ],
    options: ['-b', '--build-file', '-c', '--settings-file', '-I', '--init-script'],
  },
  {
    names: ['mvn', 'mvnw', 'mvnd'],
    reads: [
      'pom.xml',
      '.mvn/',
      'mvnw',
      'mvnw.cmd',
      'testng.xml',
      'junit-platform.properties',
      'checkstyle*.xml',
    ],
    options: ['-f', '--file', '-s', '--settings', '-gs', '-t'],
  },
  {
    names: ['sbt', 'sbtn'],
    reads: ['*.sbt', 'project/', '.sbtopts', '.scalafmt.conf', '.scalafix.conf'],
    options: ['-f'],
  },
  {
    names: ['ant', 'mill', 'lein', 'clojure', 'clj', 'bb', 'scala-cli', 'kotlinc', 'amper', 'java', 'javac'],
    reads: [
      'build.xml',
      'build.properties',
      'build.sc',
      'build.mill',
      '.mill-version',
      'project.clj',
      'deps.edn',
      'bb.edn',
      'project.scala',
      'module.yaml',
    ],
    options: ['-f', '-buildfile', '-javaagent'],
  },
  {
    names: ['ktlint', 'detekt', 'checkstyle', 'scalafmt', 'scalafix', 'pmd', 'spotbugs'],
    reads: [
      '.editorconfig',
      'detekt.yml',
      'detekt-config.yml',
      'checkstyle*.xml',
      '.scalafmt.conf',
      '.scalafix.conf',
      'pmd*.xml',
      'spotbugs*.xml',
    ],
    options: ['-c', '--config', '-R'],
  },
])
