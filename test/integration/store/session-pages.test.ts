import { UpdateCommand } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { createAdmission } from '../../../lib/store/admission.ts'
import { itemKey } from '../../../lib/store/keys.ts'
import type { SessionFilter } from '../../../lib/store/session-pages.ts'
import { createSessions } from '../../../lib/store/sessions.ts'
import { dynamoBackends, openTable } from '../../support/dynamo.ts'
import { at, creationChange, epochMs } from '../../support/sessions.ts'

describe.each(dynamoBackends)('pages of sessions on $name', (backend) => {
  let open: Awaited<ReturnType<typeof openTable>>
  let sessions: ReturnType<typeof createSessions>
  let teams = 0
  let reads = 0
  const freshTeam = () => `pages-${teams++}`

  beforeAll(async () => {
    open = await openTable(backend)
    sessions = createSessions(open.dynamo, open.table, () => epochMs, open.journals)
    open.dynamo.middlewareStack.add(
      (next, { commandName = '' }) =>
        (args) => {
          if (/^(Get|Query|BatchGet)/.test(commandName)) reads += 1
          return next(args)
        },
      { step: 'initialize', name: 'reads' },
    )
  }, 60_000)
  afterAll(() => open.close())

  const create = async (team: string, more: Parameters<typeof creationChange>[2] = {}) => {
    const id = newId('ses')
    return (await sessions.create({ team, id }, creationChange(id, team, more))).item
  }
  const countReads = () => {
    const before = reads
    return { count: () => reads - before }
  }

  it('filters where the rows are, with one query for many rows, and pages on without gap or repeat', async () => {
    const team = freshTeam()
    const made: { id: string; repo: string; tier: string | undefined }[] = []
    for (let count = 0; count < 12; count++) {
      const repo = `/repositories/${count % 3}`
      const labels: Record<string, string> = count % 2 === 0 ? { tier: 'gold' } : {}
      const { id } = await create(team, { repo, labels })
      made.push({ id, repo, tier: labels.tier })
    }
    const reads = countReads()
    const list = async (filter: SessionFilter, limit: number): Promise<string[]> => {
      const seen: string[] = []
      for (let before: string | null = null; ; ) {
        const { items, next } = await sessions.page(team, { limit, before, filter })
        seen.push(...items.map(({ id }) => id))
        before = next
        if (next === null) return seen
      }
    }
    const wanted = (pick: (one: (typeof made)[number]) => boolean) =>
      made
        .filter(pick)
        .map(({ id }) => id)
        .reverse()
    expect(await list({ repo: '/repositories/1' }, 10)).toEqual(wanted(({ repo }) => repo.endsWith('1')))
    expect(reads.count()).toBe(1)
    for (const limit of [1, 2, 5]) {
      const gold = { label: { name: 'tier', value: 'gold' }, repo: '/repositories/0' }
      expect(await list(gold, limit)).toEqual(
        wanted(({ repo, tier }) => tier === 'gold' && repo.endsWith('0')),
      )
    }
    expect(await list({ state: 'merged' }, 5)).toEqual([])
    expect(await list({ needsYou: false, state: 'created' }, 5)).toEqual(wanted(() => true))
    expect(await list({ needsYou: true }, 5)).toEqual([])
  })

  it('shows a page by one query, whatever its size', async () => {
    const team = freshTeam()
    for (let count = 0; count < 9; count++) await create(team)
    const reads = countReads()
    expect((await sessions.page(team, { limit: 20, before: null, filter: {} })).items).toHaveLength(9)
    expect(reads.count()).toBe(1)
  })

  it('names a row that can’t be read, and shows the others', async () => {
    const team = freshTeam()
    const [one, two] = [await create(team), await create(team)]
    await open.dynamo.send(
      new UpdateCommand({
        ...{ TableName: open.table, Key: itemKey.session(team, one.id) },
        ...{ UpdateExpression: 'SET #d = :d', ExpressionAttributeNames: { '#d': 'document' } },
        ExpressionAttributeValues: { ':d': 'torn' },
      }),
    )
    const page = await sessions.page(team, { limit: 10, before: null, filter: {} })
    expect(page.items.map(({ id }) => id)).toEqual([two.id])
    expect(page.damaged).toEqual([{ team, id: one.id }])
  })

  it('tells every place of a queue by one reading', async () => {
    const team = freshTeam()
    const admission = createAdmission(open.dynamo, open.table, () => epochMs)
    for (let ms = 0; ms < 30; ms++) await admission.wait(team, { session_id: `ses_${ms}`, since: at(ms) })
    const reading = countReads()
    const place = await admission.places(team)
    expect(Array.from({ length: 30 }, (_, ms) => place(at(ms), `ses_${ms}`))).toEqual(
      Array.from({ length: 30 }, (_, ms) => ({ place: ms + 1, waiting: 30 })),
    )
    expect(place(at(5), 'ses_other')).toBeNull()
    expect(reading.count()).toBe(1)
  })
})
