import { StartExecutionCommand } from '@aws-sdk/client-sfn'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { temporaryFolder } from '../../repositories.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'

let pieces: Pieces
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
}, 60_000)
afterAll(() => pieces.close())

const startOne = async () => {
  const session = { team: 'team', id: newId('ses'), attempt: 1 }
  return { ...session, name: `${session.id}-1`, arn: await pieces.platform.machine.start(session) }
}
const statusOf = (arn: string) => pieces.platform.machine.status(arn)
const gone = () => pieces.platform.machine.executionArn(`${newId('ses')}-1`)

it('lists what runs, newest first, in as many looks as it takes, each once', async () => {
  const { machine } = pieces.platform
  const started: Awaited<ReturnType<typeof startOne>>[] = []
  for (let n = 0; n < 5; n++) started.push(await startOne())
  const [first] = started
  await machine.stop(first?.arn ?? '', 'Test', 'one that no longer runs')
  await expect.poll(() => statusOf(first?.arn ?? '')).toBe('ABORTED')

  const seen: string[] = []
  let from: string | null = null
  do {
    const look: Awaited<ReturnType<typeof machine.running>> = await machine.running(3, from)
    expect(look.executions.length).toBeLessThanOrEqual(3)
    for (const { arn, name, started_at } of look.executions) {
      expect(arn).toBe(machine.executionArn(name))
      expect(new Date(started_at).toISOString()).toBe(started_at)
      seen.push(name)
    }
    from = look.next
  } while (from !== null)
  expect(seen).toEqual(
    started
      .slice(1)
      .map(({ name }) => name)
      .reverse(),
  )
  expect(await machine.running(100)).toMatchObject({ executions: { length: 4 }, next: null })
})

it('begins at the newest again where a place is no longer known', async () => {
  const { machine } = pieces.platform
  await startOne()
  expect(await machine.running(1, 'a place of another day')).toEqual(await machine.running(1))
})

it('tells for which attempt of which session an execution runs, and null for what is gone or not ours', async () => {
  const { machine } = pieces.platform
  const { team, id, attempt, arn } = await startOne()
  expect(await machine.inputOf(arn)).toEqual({ team, session_id: id, attempt })
  expect(await machine.inputOf(gone())).toBeNull()
  for (const input of [
    '{}',
    '[]',
    '{"session_id":"a","token":1}',
    `{"team":"t","session_id":"s","attempt":"1"}`,
  ]) {
    const foreign = await pieces.clients.sfn.send(
      new StartExecutionCommand({ stateMachineArn: pieces.settings.state_machine_arn, input }),
    )
    expect(await machine.inputOf(foreign.executionArn ?? '')).toBeNull()
  }
})

it('ends an execution with the reason given; a repeat and one that is gone do no harm', async () => {
  const { machine } = pieces.platform
  const { id, arn } = await startOne()
  await pieces.tokenOf(id)
  await machine.stop(arn, 'Gatehouse.NoSession', 'no session stands behind it')
  await expect.poll(() => statusOf(arn)).toBe('ABORTED')
  await machine.stop(arn, 'Other', 'too late')
  expect((await machine.history(arn)).at(-1)).toMatchObject({
    type: 'ExecutionAborted',
    executionAbortedEventDetails: { error: 'Gatehouse.NoSession', cause: 'no session stands behind it' },
  })
  await machine.stop(gone(), 'Test', 'never was')
})
