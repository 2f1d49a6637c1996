import { z } from 'zod'
import { checkResultSchema } from './schema.ts'

/**
 * What a baseline capture keeps of the untouched tree's output, small enough to travel; later phases compare
 * with it.
 */
const captureSchema = z.strictObject({
  digest: z.string(),
  number: z.number().nullable(),
  result: checkResultSchema,
})

/** Captures by the name of their check. */
export const capturesSchema = z.record(z.string(), captureSchema)

export type Captures = z.infer<typeof capturesSchema>
