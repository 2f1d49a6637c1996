import { createStepHandler } from '../../functions/steps/handler.ts'
import { newMemory } from '../../functions/sweep/round.ts'
import { sweep } from '../../functions/sweep/sweep.ts'
import type { CheckResult } from '../../lib/contract/schema.ts'
import { buildDefinition } from '../../lib/machine/definition.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { objectKey } from '../../lib/store/keys.ts'
import { createMachineDriver, FunctionError } from '../support/machine-driver.ts'
import { type Answer, createFleet } from './fleet.ts'
import { createReference } from './reference.ts'
import { bundleBody, pick, reviewBody } from './results.ts'
import { type Circumstances, operate, type Services, team } from './services.ts'

/** When each run begins, by its own clock. */
export const beginning = Date.UTC(2030, 0, 1)

export type Person = 'ada' | 'bob' | 'olga'

export const calm: Circumstances = { fault: null, dice: 0, meanwhile: async () => {}, stalled: () => {} }

/** One run: its clock, machine and workers on the real services, and the reference that follows its writes. */
export const createWorld = (services: Services, alsoTold: (item: SessionItem) => void = () => {}) => {
  const { platform, people } = services
  const time = { now: beginning }
  const now = () => time.now
  const reference = createReference()
  const trace: string[] = []
  const memory = newMemory()
  const handler = createStepHandler(platform)
  let around = calm
  const saved = new Set<string>()
  const segments = new Map<string, string>()

  /** What a function's fault looks like to the machine: a call to be made again, a lost one, one that took too long. */
  const faultName = (parks: boolean, dice: number): string => {
    const name = pick(['Lambda.ServiceException', 'Lambda.Unknown', 'States.Timeout'], dice)
    if (name !== 'States.Timeout') return name
    if (parks) return 'Lambda.Unknown'
    time.now += 60_000
    return name
  }

  const driver = createMachineDriver({
    definition: buildDefinition('step'),
    now,
    invoke: async (payload) => {
      const { fault, dice } = around
      const outcome = await operate(around, () => handler(payload))
      if (outcome.ok && !outcome.died) return outcome.value
      if (!outcome.ok && !outcome.struck) reference.violate(`a step failed by itself: ${outcome.error}`)
      throw new FunctionError(
        faultName('task_token' in Object(payload), fault?.kind === 'stall' ? dice % 2 : dice),
      )
    },
  })

  const send = async (token: string, path: string, body: unknown, key?: string): Promise<Answer> => {
    const response = await services.fetch(
      new Request(`http://model${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    )
    return { status: response.status, body: Object(await response.json()) }
  }

  /** A call of the API; null when its answer is lost with its process. */
  const call = async (
    token: string,
    path: string,
    body: unknown,
    circumstances: Circumstances,
    key?: string,
  ): Promise<Answer | null> => {
    const outcome = await operate(circumstances, () => send(token, path, body, key))
    if (outcome.died) return null
    if (!outcome.ok) throw outcome.error
    const { status } = outcome.value
    if (status >= 500 && !outcome.struck)
      reference.violate(`${path} answered ${status}: ${services.faults.at(-1)}`)
    return outcome.value
  }

  const put = async (key: string, body: string): Promise<void> => {
    if (saved.has(key)) return
    saved.add(key)
    await platform.blobs.put(key, body)
  }
  const uploads = {
    saveBundle: (session: string, name: string) => put(objectKey.bundle(team, session, name), bundleBody),
    saveResults: (session: string, results: readonly CheckResult[]) =>
      put(objectKey.artifact(team, session, 'results'), JSON.stringify(results)),
    saveReview: (session: string) => put(objectKey.artifact(team, session, 'review'), reviewBody),
  }

  const fleet = createFleet({
    now,
    send: async (token, path, body) => {
      const answer = await call(token, `/worker/v1/${path}`, body, around)
      const expected = [200, 401, 409]
      if (answer && answer.status < 500 && !expected.includes(answer.status))
        reference.violate(`worker’s ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`)
      return answer
    },
    given: ({ id, session }, { step, session: { review_identity } }, other) => {
      if (other) reference.violate(`${id} was told to work on ${session} while ${other.id} does`)
      if (step === 'Deliver' && reference.approved(session) !== review_identity?.review_id)
        reference.violate('a worker was told to deliver what was not approved')
    },
    ...uploads,
  })

  services.begin({
    created: (key, body) => segments.set(key, body),
    ...{ now, machine: driver.machine, compute: fleet.compute },
    written: (item) => {
      trace.push(`    ${item.id.slice(-4)} ${item.document.state} ${item.document.step} ${item.revision}`)
      reference.written(item)
      alsoTold(item)
    },
  })

  return {
    ...{ services, platform, time, driver, fleet, reference, trace, uploads, segments },
    /** Operations that were given up and still go on once they are woken. */
    stalled: [] as (() => Promise<void>)[],
    /** Decisions that were answered as accepted. */
    won: [] as { id: string; by: Person; path: string }[],

    /** Whatever is done within happens under these circumstances. */
    under: async <Result>(circumstances: Circumstances, work: () => Promise<Result>): Promise<Result> => {
      const before = around
      around = circumstances
      try {
        return await work()
      } finally {
        around = before
      }
    },

    /** A call of a person; a GET when there is no body. */
    ask: (person: Person, path: string, body: unknown, circumstances: Circumstances = calm, key?: string) =>
      call(people[person], path, body, circumstances, key),

    sweep: async (circumstances: Circumstances, started = false): Promise<void> => {
      const options = started ? { all: true, startedAt: now() } : {}
      const outcome = await operate(circumstances, () => sweep(platform, { ...options, memory }))
      const faults = outcome.ok ? outcome.value.faults.map(({ error }) => error) : [outcome.error]
      if (!outcome.struck && faults.length > 0)
        reference.violate(`the sweep failed by itself: ${faults.join('; ')}`)
    },

    /** Runs something of the product that is neither a step nor a call. */
    perform: async (circumstances: Circumstances, work: () => Promise<unknown>): Promise<void> => {
      const outcome = await operate(circumstances, work)
      if (!outcome.ok && !outcome.struck) throw outcome.error
    },
  }
}
export type World = ReturnType<typeof createWorld>
