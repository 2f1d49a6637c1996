import { toolsOf, variables } from './tool.ts'

/** An interpreter runs these by itself, where they are on its path. */
const shared = [
  'sitecustomize.py',
  'usercustomize.py',
  '*.pth',
  '.python-version',
  'pyvenv.cfg',
  ...variables,
]

/** What says how a project is built and installed. */
const project = ['pyproject.toml', 'setup.cfg', 'setup.py', 'MANIFEST.in']
const requirements = ['requirements*.txt', 'requirements*.in', 'requirements/', 'constraints*.txt']
const pytest = [
  'pyproject.toml',
  'pytest.ini',
  '.pytest.ini',
  'pytest.toml',
  '.pytest.toml',
  'setup.cfg',
  'tox.ini',
  'conftest.py',
]
const coverage = ['.coveragerc', '.coveragerc.toml']
const config = ['-c', '--config', '--config-file']

export const python = toolsOf('python', shared, [
  { names: ['python', 'pypy', 'py', 'ipython'], reads: [] },
  {
    names: ['pytest', 'py.test', 'pytest-watch', 'ptw'],
    reads: [...pytest, ...coverage],
    options: ['-c', '--config-file', '-p', '--confcutdir', '--cov-config', '--ds'],
  },
  {
    names: ['tox', 'detox'],
    reads: ['tox.ini', 'tox.toml', ...project, ...requirements, ...pytest],
    options: ['-c', '--conf'],
    scripts: ['tox.ini', 'tox.toml', 'pyproject.toml', 'setup.cfg'],
    starts: 'python',
  },
  {
    names: ['nox'],
    reads: ['noxfile.py', ...project, ...requirements],
    options: ['-f', '--noxfile'],
    scripts: ['noxfile.py'],
    starts: 'python',
  },
  {
    names: ['unittest', 'nose', 'nosetests', 'nose2', 'doctest', 'trial', 'stestr', 'behave', 'robot'],
    reads: [
      'unittest.cfg',
      'nose2.cfg',
      '.noserc',
      'setup.cfg',
      '.stestr.conf',
      'behave.ini',
      '.behaverc',
      'robot.toml',
      'pyproject.toml',
    ],
    options: config,
  },
  { names: ['ruff'], reads: ['ruff.toml', '.ruff.toml', 'pyproject.toml'], options: ['--config'] },
  {
    names: ['mypy', 'dmypy', 'stubtest'],
    reads: ['mypy.ini', '.mypy.ini', 'pyproject.toml', 'setup.cfg', 'py.typed'],
    options: ['--config-file', '--custom-typeshed-dir'],
  },
  {
    names: ['pyright', 'basedpyright', 'ty', 'pyre', 'pytype'],
    reads: [
      'pyrightconfig.json',
      'pyproject.toml',
      'ty.toml',
      '.pyre_configuration',
      'pytype.cfg',
      'setup.cfg',
      'typings/',
    ],
    options: ['-p', '--project', '--config-file'],
  },
  {
    names: ['black', 'isort', 'yapf', 'autopep8', 'pyupgrade'],
    reads: [
      'pyproject.toml',
      '.isort.cfg',
      'setup.cfg',
      'tox.ini',
      '.style.yapf',
      '.yapfignore',
      '.editorconfig',
      '.pep8',
    ],
    options: [...config, '--settings', '--settings-path', '--sp'],
  },
  {
    names: ['flake8', 'pycodestyle', 'pydocstyle', 'pyflakes', 'bandit', 'vulture'],
    reads: ['.flake8', 'setup.cfg', 'tox.ini', '.pydocstyle*', '.bandit', 'bandit.yaml', 'pyproject.toml'],
    options: [...config, '--append-config', '-r'],
  },
  {
    names: ['pylint', 'pylint3'],
    reads: [
      'pylintrc',
      '.pylintrc',
      'pylintrc.toml',
      '.pylintrc.toml',
      'pyproject.toml',
      'setup.cfg',
      'tox.ini',
    ],
    options: ['--rcfile', '--load-plugins'],
  },
  {
    names: ['coverage'],
    reads: [...coverage, 'setup.cfg', 'tox.ini', 'pyproject.toml'],
    options: ['--rcfile'],
  },
  { names: ['poetry'], reads: ['poetry.lock', 'poetry.toml', ...project], options: ['-C', '--project'] },
  {
    names: ['uv', 'uvx'],
    reads: ['uv.lock', 'uv.toml', ...project, ...requirements],
    options: ['--config-file', '--env-file', '-r', '--requirements'],
  },
  {
    names: ['hatch'],
    reads: ['hatch.toml', 'hatch_build.py', ...project],
    scripts: ['hatch.toml', 'pyproject.toml'],
    starts: 'python',
  },
  {
    names: ['pdm'],
    reads: ['pdm.lock', 'pdm.toml', '.pdm.toml', '.pdm-python', ...project],
    scripts: ['pyproject.toml'],
    starts: 'python',
  },
  {
    names: ['pip', 'pipx', 'pip-sync', 'pip-compile', 'setuptools', 'flit', 'rye', 'pixi', 'conda'],
    reads: [
      ...project,
      ...requirements,
      'pip.conf',
      'requirements.lock',
      'requirements-dev.lock',
      'pylock*.toml',
      'pixi.toml',
      'pixi.lock',
      'environment.yml',
      'environment.yaml',
    ],
    options: ['-r', '--requirement', '-c', '--constraint', '-f', '--file'],
  },
  {
    names: ['pipenv'],
    reads: ['Pipfile', 'Pipfile.lock', ...project],
    scripts: ['Pipfile'],
    starts: 'python',
  },
  {
    names: ['invoke', 'inv', 'fab', 'doit'],
    reads: ['tasks.py', 'tasks/', 'fabfile.py', 'dodo.py', 'invoke.*', 'pyproject.toml'],
    scripts: ['tasks.py', 'fabfile.py', 'dodo.py'],
    starts: 'python',
    options: config,
  },
  {
    names: ['django-admin', 'manage.py', 'manage'],
    reads: ['manage.py', 'settings.py', 'settings/'],
    options: ['--settings'],
  },
])
