import type { Principal } from '../../lib/store/tokens.ts'

/** What the middlewares hang on a request. */
export type Env = { Variables: { requestId: string; principal: Principal; subjectId: string } }
