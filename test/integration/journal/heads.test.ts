import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { materialise } from '../../../lib/journal/agent/state.ts'
import type { JournalState } from '../../../lib/journal/state.ts'
import { limits } from '../../../lib/limits.ts'
import { steer } from '../../../lib/session/controls.ts'
import { transition } from '../../../lib/store/effects.ts'
import { createHeads } from '../../../lib/store/heads.ts'
import { temporaryFolder } from '../../repositories.ts'
import { type AgentStack, startAgentStack } from '../../support/agent-sessions.ts'
import { starts, userSays } from '../../support/agent-turns.ts'
import { crashAt } from '../../support/pieces.ts'
import { ada, system } from '../../support/sessions.ts'

let stack: AgentStack
beforeAll(async () => {
  stack = await startAgentStack(temporaryFolder())
}, 60_000)
afterAll(() => stack.close())

const plain = ({ agent, ...rest }: JournalState) => ({ ...rest, agent: materialise(agent) })

it('what is remembered goes on to what the journal comes to, whoever wrote since', async () => {
  const { platform } = stack
  const session = await stack.begin('ValidateGate')
  const other = createHeads(platform.states, platform.journals, platform.payloads)
  const requireSame = async () => {
    const item = await session.item()
    const folded = plain(await platform.states.at(item, item.journal_head.sequence))
    expect(plain(await platform.heads.at(item))).toEqual(folded)
    expect(plain(await other.at(item))).toEqual(folded)
  }
  await requireSame()
  const { records } = await session.append(userSays('one'), userSays('x'.repeat(limits.journalEntry)))
  await requireSame()
  await transition(platform, session.key, (item) => steer(item, 'otherwise', ada))
  await session.entries(newId('evt'), [{ type: 'error', data: { message: 'an event' } }])
  await requireSame()
  // Half of this could stand, and has left nothing in what is remembered.
  expect((await session.entries(newId('evt'), [userSays('two'), ...starts(newId('call'))])).status).toBe(422)
  await requireSame()
  await session.fork(records[0]?.id ?? '')
  await session.append(userSays('three'))
  // Decided, and still to reach the bucket.
  const facts = [{ type: 'error' as const, data: { message: 'in the outbox' } }]
  await platform.sessions.update(session.key, () => ({ actor: system, facts }))
  await requireSame()
  await Promise.all(['four', 'five', 'six'].map((text) => session.append(userSays(text))))
  await requireSame()
})

it('an item from before what is remembered gets the state that belongs to it', async () => {
  const { platform } = stack
  const session = await stack.begin()
  await session.append(userSays('one'))
  const before = await session.item()
  await session.append(userSays('two'))
  expect(plain(await platform.heads.at(before))).toEqual(
    plain(await platform.states.at(before, before.journal_head.sequence)),
  )
})

it('an append reads no more of a long journal than of a short one', async () => {
  const session = await stack.begin()
  const { dynamo, s3, sfn } = stack.pieces.clients
  const callsOfAppend = async (): Promise<number> => {
    const counted = crashAt({ dynamo, s3, sfn }, Infinity, 'before')
    await session.append(userSays('again'))
    for (const client of [dynamo, s3, sfn]) client.middlewareStack.remove('crash')
    return counted.calls
  }
  await session.append(userSays('first'))
  const early = await callsOfAppend()
  for (let n = 0; n < 12; n++) await session.append(userSays(`${n}`))
  expect(await callsOfAppend()).toBe(early)
})
