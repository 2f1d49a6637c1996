import { z } from 'zod'

const turnedAway = z.object({ $metadata: z.object({ httpStatusCode: z.literal(503) }) })

/** Whether a service answered, at every try, that it can't do this now, as one does whose disk is full. */
export const isTurnedAway = (error: unknown): boolean => {
  for (let at = error; at instanceof Error; at = at.cause) if (turnedAway.safeParse(at).success) return true
  return false
}
