import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../functions/api/app.ts'
import { problemSchema, sessionSchema } from '../../functions/api/schemas.ts'
import { contractHash } from '../../lib/contract/hash.ts'
import { newId, newSecret } from '../../lib/ids.ts'
import type { Fact } from '../../lib/journal/facts.ts'
import { openGate } from '../../lib/session/gates.ts'
import { temporaryFolder } from '../repositories.ts'
import { type Pieces, startPieces } from '../support/pieces.ts'
import { aCheckpoint, aContract, creationChange, sha, system } from '../support/sessions.ts'

const rounds = Number(process.env.GATEHOUSE_RACE_ROUNDS ?? 200)
const callers = 50
const team = 'team'

let pieces: Pieces
let app: ReturnType<typeof createApp>
const secret = newSecret()

beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
  app = createApp(pieces.platform, { version: 'test', log: ({ error }) => console.error(error) })
  await pieces.platform.tokens.add(secret, { kind: 'person', team, principal: 'ada', role: 'approver' }, null)
})
afterAll(() => pieces.close())

/** A session that stands at its review, as far as a decision can see. */
const atReview = async (): Promise<{ id: string; review_id: string }> => {
  const id = newId('ses')
  const review_id = newId('rev')
  const review = {
    ...{ review_id, kind: 'change' as const, base: sha('a'), commit: sha('b'), tree: sha('d') },
    contract_hash: contractHash(aContract()),
  }
  const facts: Fact[] = [
    { type: 'step_completed', data: { step: 'Verify', trigger: 'verified', next: 'Review' } },
    { type: 'state_changed', data: { from: 'created', to: 'needs_approval', trigger: 'verified' } },
    {
      type: 'diff_ready',
      data: {
        review,
        stat: { files: 1, insertions: 1, deletions: 0 },
        ...{ patch_full_bytes: 1, body_artifact: 'review.json', disclosed: [], checkpoint: aCheckpoint() },
      },
    },
    openGate('approval', Date.now()),
  ]
  const { item } = await pieces.platform.sessions.create({ team, id }, creationChange(id, team))
  await pieces.platform.sessions.commit(item, { actor: system, facts, runtime: { start_pending: false } })
  return { id, review_id }
}

const kinds = ['approve', 'reject', 'cancel'] as const
type Kind = (typeof kinds)[number]

const call = async (kind: Kind, { id, review_id }: { id: string; review_id: string }) => {
  const path = kind === 'cancel' ? 'cancel' : `review/${kind}`
  const bodies = { approve: { review_id }, reject: { review_id, reason: 'no' }, cancel: { reason: 'stop' } }
  const answer = await app.fetch(
    new Request(`http://gatehouse/v1/sessions/${id}/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(bodies[kind]),
    }),
  )
  return { kind, status: answer.status, body: await answer.json() }
}

const cancelAnswer = z.object({ session: sessionSchema, already_terminal: z.boolean() })

/** Whether a call was the one that decided. */
const won = ({ kind, status, body }: Awaited<ReturnType<typeof call>>): boolean =>
  status === 200 && (kind !== 'cancel' || !cancelAnswer.parse(body).already_terminal)

test(`of ${callers} approvals, rejections and cancels at once one wins, and the others are told what happened (${rounds} rounds)`, async () => {
  const winners: Record<Kind, number> = { approve: 0, reject: 0, cancel: 0 }
  for (let round = 0; round < rounds; round++) {
    const session = await atReview()
    const asked = Array.from({ length: callers }, (_, index) => kinds[(index + round) % 3] ?? 'cancel')
    const answers = await Promise.all(asked.map((kind) => call(kind, session)))
    const { document } = await pieces.platform.sessions.require({ team, id: session.id })
    const gates = answers.filter((answer) => answer.kind !== 'cancel' && won(answer))
    // A cancel may follow an approval, which ends nothing by itself: then each of the two decided something of its own.
    expect(gates.length).toBeLessThanOrEqual(1)
    const cancels = answers.filter((answer) => answer.kind === 'cancel' && won(answer))
    expect(cancels.length).toBeLessThanOrEqual(1)
    expect(gates.length + cancels.length).toBeGreaterThanOrEqual(1)
    if (gates[0]?.kind === 'reject') expect(cancels).toEqual([])
    expect(document.state).toBe('abandoned')
    expect(document.error).toBe(gates[0]?.kind === 'reject' ? 'no' : 'stop')
    for (const answer of answers.filter((one) => !won(one))) {
      if (answer.kind === 'cancel') {
        expect(cancelAnswer.parse(answer.body).session.state).toBe('abandoned')
        continue
      }
      const problem = problemSchema.parse(answer.body)
      expect(problem.code).toBe('already_decided')
      // The loser sees the session as the winner left it, not as it was before.
      expect(problem.session?.gate).toBeNull()
      expect(problem.session?.decided_by).toBe('ada')
    }
    let decisions = 0
    for await (const lines of pieces.platform.journals.segments({ team, id: session.id }))
      decisions += lines.filter((line) => line.includes('"type":"gate_resolved"')).length
    expect(decisions).toBe(1)
    for (const answer of [...gates, ...cancels]) winners[answer.kind] += 1
  }
  expect(winners.approve + winners.reject + winners.cancel).toBeGreaterThanOrEqual(rounds)
}, 300_000)
