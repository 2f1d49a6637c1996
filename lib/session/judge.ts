import { excessTexts } from '../process/bounds/excess.ts'
import type { Turn } from './document.ts'
import { shown } from './gates.ts'
import type { Result } from './protocol.ts'

type Code = Extract<Result, { outcome: 'Code' }>
type Judgement = Pick<Turn, 'status' | 'decided_by_layer' | 'reason' | 'reset_at'>

const judged = (
  status: Turn['status'],
  decided_by_layer: Turn['decided_by_layer'],
  reason: string,
  reset_at: string | null = null,
): Judgement => ({ status, decided_by_layer, reason, reset_at })

/** Layer 1: what the engine reported of itself through its tools; never what it printed. */
const byReport = ({ report }: Code): Judgement | null =>
  report &&
  judged(report.status, 1, shown(report.reason) || `the engine reported ${report.status}`, report.reset_at)

/** Layer 2: how its process ended, and whether there is work. Null when there is no exit to read. */
const byExit = ({ status, exit_code, signal, changed, nomination }: Code): Judgement | null => {
  switch (status) {
    case 'over_budget':
      return judged('over_budget', 2, 'ended because the budget was used up')
    case 'timed_out':
      return judged('timed_out', 2, 'ended because its time was used up')
    case 'unavailable':
      return judged(
        'agent_unavailable',
        2,
        exit_code === null ? 'could not be started' : `a command was not there: exit ${exit_code}`,
      )
    case 'tree_too_large':
    case 'output_too_large':
    case 'out_of_room':
      return judged('resource_killed', 2, `ended because ${excessTexts[status]}`)
    case 'killed':
      return judged('resource_killed', 2, `killed: ${signal ?? `exit ${exit_code}`}`)
    case 'finished':
      return changed || nomination
        ? judged('success', 2, 'exit 0')
        : judged('failed', 2, 'exit 0, and nothing was changed')
    case 'failed':
      return exit_code === null ? null : judged('failed', 2, `exit ${exit_code}`)
    case 'cancelled':
      return null
  }
}

/** Layer 3: the process is gone without an exit code. Work that is there says nothing about whether it was finished. */
const byRemains = ({ changed, signal }: Code): Judgement =>
  changed
    ? judged('unknown', 3, `gone (${signal ?? 'no exit code'}), with changes left behind`)
    : judged('failed', 3, `gone (${signal ?? 'no exit code'}), with nothing changed`)

/**
 * What an engine's turn came to (spec/workflow-state.md C.4): the first layer that can tell decides, and is recorded.
 * Layer 0, the contract, is evaluated after every turn whatever this says, and `rule` hears it first.
 */
export const judgeTurn = (iteration: number, result: Code): Turn => ({
  iteration,
  ...(byReport(result) ?? byExit(result) ?? byRemains(result)),
})

/** Turns that say nothing about the work: the engine was not there, was killed, or met a limit. Exhaustive on purpose. */
export const isInterrupted = ({ status }: Turn): boolean => {
  switch (status) {
    case 'rate_limited':
    case 'auth_required':
    case 'resource_killed':
    case 'agent_unavailable':
    case 'timed_out':
    case 'over_budget':
      return true
    case 'success':
    case 'failed':
    case 'unknown':
      return false
  }
}
