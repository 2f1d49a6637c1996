import { z } from 'zod'
import { digestIn } from '../artifact-name.ts'
import { checkpointSchema } from '../session/document.ts'
import type { Entry } from './entry.ts'

/** A file beside the journal that an entry says was kept, with the SHA-256 of its bytes in hex. */
export type NamedFile = {
  readonly folder: 'artifacts' | 'bundles'
  readonly name: string
  readonly sha256: string
  /** Whether it is a review's body, which names the patch that was shown with it. */
  readonly review?: true
}

const logSchema = z.looseObject({ artifact: z.string().nullable() })
const checkSchema = z.looseObject({ result: logSchema })
const resultsSchema = z.looseObject({ results: z.array(logSchema), artifact: z.string() })
const reviewSchema = z.looseObject({ body_artifact: z.string(), checkpoint: checkpointSchema })
const retainedSchema = z.looseObject({ checkpoint: checkpointSchema })

/** An artifact whose name says what it holds; of any other, as older sessions have them, nothing can be told. */
export const namedArtifact = (name: string | null): NamedFile[] => {
  const sha256 = name === null ? null : digestIn(name)
  return name === null || sha256 === null ? [] : [{ folder: 'artifacts', name, sha256 }]
}

const bundleOf = ({ bundle, bundle_sha256 }: z.infer<typeof checkpointSchema>): NamedFile[] =>
  bundle === null || bundle_sha256 === null
    ? []
    : [{ folder: 'bundles', name: bundle, sha256: bundle_sha256 }]

/**
 * The files that an entry, with its data in place, says were kept: logs, results, the review and bundles of work in
 * progress. Each is uploaded before its entry is written, so that one that is not there is lost.
 */
export const filesNamedBy = ({ type, data }: Pick<Entry, 'type' | 'data'>): NamedFile[] => {
  switch (type) {
    case 'setup_completed':
    case 'engine_finished':
      return namedArtifact(logSchema.parse(data).artifact)
    case 'check_completed':
      return namedArtifact(checkSchema.parse(data).result.artifact)
    case 'contract_baseline':
    case 'contract_evaluated': {
      const { results, artifact } = resultsSchema.parse(data)
      return [artifact, ...results.map((result) => result.artifact)].flatMap(namedArtifact)
    }
    case 'checkpoint_created':
      return bundleOf(checkpointSchema.parse(data))
    case 'workspace_retained':
      return bundleOf(retainedSchema.parse(data).checkpoint)
    case 'diff_ready': {
      const { body_artifact, checkpoint } = reviewSchema.parse(data)
      const body = namedArtifact(body_artifact).map((file) => ({ ...file, review: true as const }))
      return [...body, ...bundleOf(checkpoint)]
    }
    default:
      return []
  }
}
