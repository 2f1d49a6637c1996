import { z } from 'zod'

/** The roles of a token, weakest first; each may do what those before it may. */
export const roleSchema = z.enum(['viewer', 'operator', 'approver', 'admin'])
export type Role = z.infer<typeof roleSchema>

/** Whether a token of role `held` may make a call that needs `needed`. */
export const allows = (held: Role, needed: Role): boolean =>
  roleSchema.options.indexOf(held) >= roleSchema.options.indexOf(needed)
