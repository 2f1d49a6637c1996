import type { Start } from '../e2e/client.ts'
import { makeRepository, type TestRepository } from '../repositories.ts'

/** A session that does as little as one can: one check, one engine that makes it green, nothing asked but the review. */
export const trivialSession = (
  more: Partial<Start> = {},
  directory?: string,
): { repository: TestRepository; body: Start } => {
  const repository = makeRepository(directory === undefined ? {} : { directory })
  return {
    repository,
    body: {
      repo: repository.directory,
      intent: 'Write the file',
      mode: 'auto',
      engine_command: 'echo done > file',
      contract: { checks: [{ name: 'file', command: 'test -e file' }] },
      ...more,
    },
  }
}
