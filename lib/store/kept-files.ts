import { createHash } from 'node:crypto'
import { z } from 'zod'
import { GatehouseError } from '../errors.ts'
import type { Entry } from '../journal/entry.ts'
import { digestIn } from '../session/artifact-name.ts'
import { checkpointSchema } from '../session/document.ts'
import { reviewBodySchema } from '../session/protocol.ts'
import { objectKey } from './keys.ts'
import type { Platform } from './platform.ts'

type Id = { team: string; id: string }
type Parts = Pick<Platform, 'artifacts' | 'blobs'>

const artifactSchema = z.looseObject({ artifact: z.string() })
const reviewSchema = z.looseObject({ body_artifact: z.string(), checkpoint: checkpointSchema })
const retainedSchema = z.looseObject({ checkpoint: checkpointSchema })

const requireBundle = async ({ blobs }: Parts, { team, id }: Id, checkpoint: unknown): Promise<void> => {
  const { bundle, bundle_sha256 } = checkpointSchema.parse(checkpoint)
  if (bundle === null || bundle_sha256 === null) return
  const seen = createHash('sha256')
  const bytes = await blobs.stream(objectKey.bundle(team, id, bundle))
  for await (const chunk of bytes ?? []) seen.update(chunk)
  if (bytes === null || seen.digest('hex') !== bundle_sha256)
    throw new GatehouseError('journal_damaged', `bundle ${bundle} is missing or not what was written`)
}

/** The text of an artifact whose name says what it holds; null for any other, of which nothing can be told. */
const requireArtifact = async ({ artifacts }: Parts, id: Id, name: string): Promise<string | null> => {
  if (digestIn(name) === null) return null
  const text = await artifacts.text(id, name)
  if (text === null) throw new GatehouseError('journal_damaged', `artifact ${name} is missing`)
  return text
}

const requireReview = async (parts: Parts, id: Id, name: string): Promise<void> => {
  const text = await requireArtifact(parts, id, name)
  if (text !== null) await requireArtifact(parts, id, reviewBodySchema.parse(JSON.parse(text)).patch_artifact)
}

/**
 * Proves the files that an entry speaks of by their hashes: results, the review with its patch, and bundles of work in
 * progress. Throws `journal_damaged`.
 */
export const proveFiles = async (parts: Parts, id: Id, { type, data }: Entry): Promise<void> => {
  switch (type) {
    case 'contract_baseline':
    case 'contract_evaluated':
      await requireArtifact(parts, id, artifactSchema.parse(data).artifact)
      return
    case 'checkpoint_created':
      return requireBundle(parts, id, data)
    case 'workspace_retained':
      return requireBundle(parts, id, retainedSchema.parse(data).checkpoint)
    case 'diff_ready': {
      const { body_artifact, checkpoint } = reviewSchema.parse(data)
      await requireReview(parts, id, body_artifact)
      return requireBundle(parts, id, checkpoint)
    }
  }
}
