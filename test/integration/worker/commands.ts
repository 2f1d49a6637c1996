import { contractSchema } from '../../../lib/contract/schema.ts'
import { newId } from '../../../lib/ids.ts'
import type { Command } from '../../../lib/session/protocol.ts'
import type { Step } from '../../../lib/session/states.ts'

type Facts = Command['session']

export const contractOf = (...commands: string[]) =>
  contractSchema.parse({ checks: commands.map((command, index) => ({ name: `check-${index}`, command })) })

/** What a session on a repository is before anything was done. */
export const aSession = (repo: string, more: Partial<Facts> = {}): Facts => ({
  ...{ id: newId('ses'), repo, intent: 'Do it', requested_base: null },
  ...{ start_commit: null, start_tree: null, resumed_from: null },
  ...{ engine: 'external:command', engine_command: 'true', verify: 'clean' as const },
  contract: contractOf('test -e done'),
  ...{ contract_hash: null, contract_provenance: null },
  ...{ iterations: 1, max_iterations: 8, deadline_at: null, checkpoint: null, steering_messages: [] },
  ...{ created_at: '2030-01-01T00:00:00.000Z', review_identity: null },
  delivery: { kind: 'branch', branch: null },
  ...{ accepted_red: [], same_output: [], nomination: null, mutated: false, keep_workspace_on_cancel: false },
  ...more,
})

export const aCommand = (step: Step, session: Facts, more: Partial<Command> = {}): Command => {
  const id = newId('cmd')
  return {
    ...{ id, step, session, allow_local_repositories: true, budget_left_usd: null },
    ...{ failing: [], captures: {}, bundle: null, review_id: id.replace(/^cmd_/, 'rev_') },
    ...more,
  }
}
