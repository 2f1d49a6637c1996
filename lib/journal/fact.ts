import { z } from 'zod'

/** The schema of one kind of fact: its type, and the data that belongs to it. */
export const factSchema = <Type extends string, Data extends z.ZodType>(type: Type, data: Data) =>
  z.strictObject({ type: z.literal(type), data })
