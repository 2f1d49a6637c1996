import { expect } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import type { Document } from '../../../lib/session/document.ts'
import { needsYou } from '../../../lib/session/gates.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { isGateStep, isTerminal } from '../../../lib/session/states.ts'

const gateAt = {
  PreflightGate: 'preflight',
  Confirm: 'contract',
  ValidateGate: 'validate',
  Review: 'approval',
}

/** A gate is open exactly at its own step, but for the one that mode auto goes through by itself. */
const requireGate = ({ document }: SessionItem): void => {
  const { gate, step, mode } = document
  if (!isGateStep(step)) expect(gate).toBeNull()
  else if (!(step === 'Confirm' && mode === 'auto' && gate === null)) expect(gate?.kind).toBe(gateAt[step])
}

const requireCounters = ({ document }: SessionItem): void => {
  const { state, iterations, infra_failures, preflight_retries, checkpoint_resumes } = document
  expect(iterations).toBeLessThanOrEqual(document.max_iterations)
  expect(document.round_started_at).toBeLessThanOrEqual(iterations)
  expect(infra_failures).toBeLessThanOrEqual(limits.infraFailures)
  // A setup that fails so often is for a person to decide on, who may not come.
  const isAsked = document.gate?.cause === 'setup' || document.stopped || state === 'abandoned'
  if (infra_failures === limits.infraFailures && !isAsked)
    expect(['infrastructure', 'stalled']).toContain(document.failure_kind)
  expect(preflight_retries).toBeLessThanOrEqual(limits.preflightRetries)
  expect(checkpoint_resumes).toBeLessThanOrEqual(limits.checkpointResumes)
  expect(document.retries_used).toBeLessThanOrEqual(
    document.transient_retries ?? limits.transientRetries.default,
  )
  expect(document.guidance_applied).toBeLessThanOrEqual(document.steering_messages.length)
  expect(document.consecutive_failures).toBeLessThanOrEqual(document.total_failures)
}

/** What is open goes with where the session is; what has ended or rests has nothing open. */
const requireOpen = ({ document, runtime }: SessionItem): void => {
  const { step, question, rate_limit, stopped, resume_at, state } = document
  expect(stopped).toBe(step === 'Rest')
  expect(resume_at !== null).toBe(stopped)
  expect(rate_limit !== null).toBe(step === 'RateLimit')
  if (question?.status === 'pending') expect(step).toBe('Code')
  if (isTerminal(state) || stopped) expect(needsYou(document)).toBeNull()
  expect(step === 'Settle').toBe(isTerminal(state))
  expect(document.failure_kind !== null).toBe(state === 'failed')
  if (runtime.resting) expect(stopped).toBe(true)
}

/** What holds of a session at any time. */
export const requireInvariants = (item: SessionItem): void => {
  requireGate(item)
  requireCounters(item)
  requireOpen(item)
}

const asks = ({ step, state }: Document): boolean => step === 'ValidateGate' || isTerminal(state)

/** What holds of every single move: some things never fall, and a ceiling is never passed without what it promises. */
export const requireProgress = (
  { document: before }: SessionItem,
  { document: after }: SessionItem,
): void => {
  expect(after.total_failures).toBeGreaterThanOrEqual(before.total_failures)
  expect(after.iterations).toBeGreaterThanOrEqual(before.iterations)
  expect(after.mutated || !before.mutated).toBe(true)
  expect(after.steering_messages.slice(0, before.steering_messages.length)).toEqual(before.steering_messages)
  if (isTerminal(before.state)) expect(after.state).toBe(before.state)
  const failed = after.total_failures > before.total_failures
  const ceiling =
    after.consecutive_failures >= limits.consecutiveFailures || after.total_failures >= limits.totalFailures
  if (failed && ceiling) expect(asks(after)).toBe(true)
}
