import { expect, test } from 'vitest'
import { newSecret } from '../../lib/ids.ts'
import { git } from '../repositories.ts'
import { createClient, type Start } from './client.ts'
import { scripted } from './engines.ts'
import { useStack } from './stack.ts'

const used = useStack()
const green = { checks: [{ name: 'there', command: 'test -e a.txt' }] }

const begin = (more: Partial<Start> = {}) => used.begin(more, { 'a.txt': 'one\n' })

test('an engine that holds that nothing should change is heard, red contract or not, and a person decides', async () => {
  const { directory, id } = await begin({
    engine_command: scripted(
      "await tool('report_no_change', { kind: 'premise_wrong', summary: 'The bug is not there', evidence: 'I looked' })",
    ),
  })
  const session = await used.api.untilGate(id, 'approval')
  expect(session).toMatchObject({
    iterations: 1,
    mutated: false,
    no_change_finding: { kind: 'premise_wrong', summary: 'The bug is not there', verification: null },
    review_identity: { kind: 'finding' },
  })
  await used.api.approve(id)
  expect(await used.api.untilEnd(id)).toMatchObject({
    state: 'reported',
    no_change_finding: { verification: 'human_approved', resolved_at: expect.any(String) },
  })
  expect(git(directory, 'branch', '--list', 'gatehouse/*')).toBe('')
})

test('an edit that was taken back leaves nothing to conclude, nominated or not', async () => {
  const { id } = await begin({
    repair_invokes: 0,
    engine_command: scripted(`
      const before = readFileSync('a.txt')
      writeFileSync('a.txt', 'two')
      writeFileSync('a.txt', before)
      await tool('report_no_change', { kind: 'premise_wrong', summary: 'x', evidence: 'y' })
    `),
  })
  expect(await used.api.untilEnd(id)).toMatchObject({ state: 'failed', failure_kind: 'error', mutated: true })
})

test('in mode auto a trusted contract that was green before anything was done reports by itself', async () => {
  const { id } = await begin({ contract: green, engine_command: 'true' })
  const asked = await used.api.untilGate(id, 'contract')
  await used.api.confirm(asked)
  expect(await used.api.untilEnd(id)).toMatchObject({
    state: 'reported',
    no_change_finding: { kind: 'already_satisfied', verification: 'runtime_baseline_green' },
    decided_by: 'runtime_baseline_green',
  })
})

test('shipping that was authorised at the start needs nobody, says who it was, and is refused to an operator', async () => {
  const { directory, id } = await begin({ yes_ship: true })
  expect(await used.api.untilEnd(id)).toMatchObject({
    state: 'merged',
    yes_ship: { by: 'admin', void: false },
    decided_by: 'yes_ship of admin',
  })
  const journal = await used.api.journal(id)
  expect(journal.filter(({ type }) => type === 'gate_opened')).toHaveLength(1)
  expect(git(directory, 'branch', '--list', 'gatehouse/*')).not.toBe('')
  const secret = newSecret()
  await used.stack.platform.tokens.add(
    secret,
    { kind: 'person', team: 'local', principal: 'olga', role: 'operator' },
    null,
  )
  const olga = createClient(used.stack.url, secret)
  const body = { repo: directory, intent: 'x', engine_command: 'true', yes_ship: true }
  expect((await olga.call('POST', '/v1/sessions', body)).status).toBe(403)
})

test('what was authorised at the start ships nothing of which something has to be disclosed', async () => {
  const { id } = await begin({
    yes_ship: true,
    contract: { checks: [{ name: 'unit', command: 'npm test' }] },
    engine_command: `echo script-shell=/bin/true > .npmrc; echo '{"scripts":{"test":"exit 1"}}' > package.json`,
  })
  const session = await used.api.untilGate(id, 'approval')
  expect(session).toMatchObject({ state: 'needs_approval', review_disclosed: ['check_configuration'] })
  expect(await used.api.call('GET', `/v1/sessions/${id}/review`)).toMatchObject({
    body: { disclosures: [{ kind: 'check_configuration', paths: ['.npmrc', 'package.json'] }] },
  })
  await used.api.cancel(id)
})

test('a person who answers a review takes it over: what was authorised before ships nothing more', async () => {
  const { id } = await begin({
    yes_ship: true,
    engine_command: scripted(
      "writeFileSync('work', prompt.includes('finish it') ? 'all' : 'half'); if (prompt.includes('finish it')) writeFileSync('done', '')",
    ),
  })
  const asked = await used.api.untilGate(id, 'validate')
  await used.api.call('POST', `/v1/sessions/${id}/gate`, { gate_id: asked.gate?.id, action: 'advance' })
  const first = await used.api.untilGate(id, 'approval', asked.journal_head.sequence)
  expect(first).toMatchObject({ state: 'needs_approval', accepted_red: ['done'], yes_ship: { void: false } })
  await used.api.call('POST', `/v1/sessions/${id}/review/changes`, {
    review_id: first.review_identity?.review_id,
    text: 'finish it',
  })
  const second = await used.api.untilGate(id, 'approval', first.journal_head.sequence)
  expect(second).toMatchObject({ state: 'needs_approval', accepted_red: [], yes_ship: { void: true } })
  await used.api.cancel(id)
})
