import type { CheckRun } from '../../../lib/contract/facts.ts'
import {
  type Contract,
  type ContractCheck,
  contractCheckSchema,
  contractSchema,
} from '../../../lib/contract/schema.ts'
import type { ProcessResult } from '../../../lib/process/run.ts'

/** A valid check, with what a test is about put over it. */
export const aCheck = (more: Partial<ContractCheck> = {}): ContractCheck => ({
  ...contractCheckSchema.parse({ name: 'unit', command: './run-tests' }),
  ...more,
})

export const aContract = (
  checks: Partial<ContractCheck>[] = [{}],
  more: Partial<Contract> = {},
): Contract => ({
  ...contractSchema.parse({ checks: [] }),
  checks: checks.map(aCheck),
  ...more,
})

export const aProcess = (more: Partial<ProcessResult> = {}): ProcessResult => ({
  ...{ ended: 'exited', exitCode: 0, signal: null, error: null, head: '', tail: '' },
  ...{ bytes: 0, omittedBytes: 0, durationMs: 5, survivors: 0 },
  ...more,
})

export const aRun = (
  process: Partial<ProcessResult> = {},
  facts: Partial<CheckRun['facts']> = {},
  clamped = false,
): CheckRun => ({
  process: aProcess(process),
  facts: { digest: 'd', number: null, assertion: null, ...facts },
  clamped,
})
