import { describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { limits } from '../../../lib/limits.ts'
import { answer, cancel } from '../../../lib/session/controls.ts'
import { dueAt } from '../../../lib/session/due.ts'
import { needsYou } from '../../../lib/session/gates.ts'
import { ask, expireQuestion, takeLease } from '../../../lib/session/worker.ts'
import { ada, at, system } from '../../support/sessions.ts'
import { aRun } from './results.ts'
import { setOutTo } from './road.ts'

const request_id = newId('req')

/** A session whose engine runs, with its worker's lease. */
const running = () => {
  const road = setOutTo('Code')
  road.enter()
  const worker = road.item.runtime.compute?.id ?? ''
  road.write(takeLease(road.item, worker, 'claim', road.now))
  const lease = { worker_id: worker, epoch: road.item.runtime.lease.epoch }
  const question = (id = request_id, prompt = 'Which one?') =>
    ask(road.item, lease, { request_id: id, prompt }, road.now)
  return { road, lease, question }
}
const asked = () => {
  const all = running()
  all.road.write(all.question())
  return all
}
const told = (code: string) => expect.objectContaining({ code })

describe('a question', () => {
  it('waits for a person until its deadline, and says so', () => {
    const { road } = asked()
    expect(road.document.question).toMatchObject({
      ...{ status: 'pending', asked_at: at(0), deadline_at: at(limits.questionMs), answer: null },
    })
    expect(needsYou(road.document)).toMatchObject({ kind: 'question', request_id, context: 'Which one?' })
    expect(Date.parse(dueAt(road.item) ?? '')).toBeLessThanOrEqual(road.now + limits.questionMs)
  })

  it('is answered once, by name', () => {
    const { road } = asked()
    road.write(answer(road.item, { request_id, text: 'the left' }, ada))
    expect(road.document.question).toMatchObject({
      status: 'answered',
      answer: 'the left',
      answered_by: 'ada',
    })
    expect(needsYou(road.document)).toBeNull()
    const again = () => answer(road.item, { request_id, text: 'the right' }, ada)
    expect(again).toThrow(told('already_decided'))
    const other = () => answer(road.item, { request_id: newId('req'), text: 'x' }, ada)
    expect(other).toThrow(told('not_found'))
  })

  it('expires at its deadline and not before, and can’t be answered after that', () => {
    const { road } = asked()
    road.later(limits.questionMs - 1)
    expect(expireQuestion(road.item, system, road.now)).toBeNull()
    road.later(1)
    road.write(expireQuestion(road.item, system, road.now))
    expect(road.document.question).toMatchObject({ status: 'expired', answer: null })
    expect(road.told('user_input_expired')).toMatchObject([{ request_id, waited_secs: 600 }])
    expect(expireQuestion(road.item, system, road.now)).toBeNull()
    expect(needsYou(road.document)).toBeNull()
    expect(() => answer(road.item, { request_id, text: 'x' }, ada)).toThrow(told('already_decided'))
  })

  it('that expired or was answered does not keep the next from being asked', () => {
    const { road, question } = asked()
    expect(() => question(newId('req'))).toThrow(told('illegal_transition'))
    road.later(limits.questionMs)
    road.write(expireQuestion(road.item, system, road.now))
    const next = newId('req')
    road.write(question(next, 'And now?'))
    expect(needsYou(road.document)).toMatchObject({ request_id: next })
  })

  it('that is repeated is asked once', () => {
    const { question } = asked()
    expect(question()).toBeNull()
  })

  it('dies with the run that asked it', () => {
    for (const end of ['finish', 'lose', 'cancel'] as const) {
      const { road } = asked()
      if (end === 'finish') road.work(aRun())
      if (end === 'lose') road.lose()
      if (end === 'cancel') road.write(cancel(road.item, null, ada))
      expect(road.document.question?.status).toBe('withdrawn')
      expect(needsYou(road.document)).toBeNull()
      expect(() => answer(road.item, { request_id, text: 'x' }, ada)).toThrow(told('already_decided'))
      expect(expireQuestion(road.item, system, road.now + limits.questionMs)).toBeNull()
    }
  })

  it('is the running engine’s alone, under its lease', () => {
    const { road, lease } = running()
    const asked = { request_id, prompt: 'x' }
    const stale = () => ask(road.item, { ...lease, epoch: lease.epoch - 1 }, asked, road.now)
    expect(stale).toThrow(told('superseded'))
    road.work(aRun())
    expect(() => ask(road.item, lease, asked, road.now)).toThrow(told('superseded'))
  })

  it('is shown in bounds, and kept whole', () => {
    const { road, question } = running()
    const prompt = `${'é'.repeat(limits.question / 2)}`
    road.write(question(request_id, prompt))
    expect(road.document.question?.prompt).toBe(prompt)
    expect(needsYou(road.document)?.context).toHaveLength(limits.gateContext)
  })
})
