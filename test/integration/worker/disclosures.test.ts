import { expect, test } from 'vitest'
import { type ReviewBody, reviewBodySchema } from '../../../lib/session/protocol.ts'
import { contractOf } from './commands.ts'
import { outcome, startSession } from './support.ts'

/** The review of what an engine did to a repository, as it was uploaded. */
const reviewed = async (engine_command: string, ...checks: string[]) => {
  const session = await startSession({ engine_command, contract: contractOf(...checks) })
  session.repository.commit({
    'package.json': JSON.stringify({ scripts: { test: 'mocha' } }),
    'requirements.txt': 'requests\n',
    'pkg/__init__.py': '',
  })
  const prepared = outcome(await session.run('Prepare'), 'Prepare')
  const start = { start_commit: prepared.start_commit, start_tree: prepared.tree }
  const { checkpoint } = outcome(await session.run('Code', start), 'Code')
  const { review } = outcome(await session.run('Verify', { ...start, checkpoint }), 'Verify')
  const stored = session.api.state.store.get(`artifact/${review?.body_artifact}`)
  const body: ReviewBody = reviewBodySchema.parse(JSON.parse(String(stored)))
  return { kinds: review?.disclosed, body }
}

test('a review tells what is easily missed in its patch', async () => {
  const { kinds, body } = await reviewed(
    [
      'echo script-shell=/bin/true > .npmrc; echo {} > .mocharc.json; ln -s /etc/passwd p; ln -s a.txt q',
      'echo x > wsgiref.py; echo x > requests.py; echo x > pkg/logging.py; echo x > tool; chmod +x tool',
      "printf 'x \\342\\200\\256 y\\n' > odd.js; printf 'x \\342\\202\\254 y\\n' > even.js",
      'echo "* text" > .gitattributes; printf "[submodule \\"x\\"]\\n" > .gitmodules',
    ].join('; '),
    'npm test --version',
  )
  const paths = Object.fromEntries(body.disclosures.map((one) => [one.kind, one.paths]))
  expect(paths).toEqual({
    check_configuration: ['.mocharc.json', '.npmrc'],
    shadowed_module: ['requests.py', 'wsgiref.py'],
    outside_link: ['p'],
    new_executable: ['tool'],
    submodule: ['.gitmodules'],
    git_attributes: ['.gitattributes'],
    reordered_text: ['odd.js'],
  })
  expect(kinds).toEqual(body.disclosures.map(({ kind }) => kind))
  expect(body.disclosures.find(({ kind }) => kind === 'outside_link')?.text).toContain('p → /etc/passwd')
  expect(body.contract_overlap).toEqual([{ check: 'check-0', paths: ['.mocharc.json', '.npmrc'] }])
})

test('and is silent about work like any other', async () => {
  const { kinds, body } = await reviewed(
    'mkdir src; echo x > src/a.js; echo y >> a.txt; touch done',
    'test -e done',
  )
  expect(kinds).toEqual([])
  expect(body).toMatchObject({ disclosures: [], contract_overlap: [{ paths: ['done'] }] })
})

test('a review of before there were disclosures can still be read', () => {
  const old = {
    ...{ changed_paths: [], contract_overlap: [], overlap_disclosure: null, patch: '' },
    ...{ patch_truncated: false, patch_full_bytes: 0, patch_artifact: 'patch' },
  }
  expect(reviewBodySchema.parse(old).disclosures).toEqual([])
})
