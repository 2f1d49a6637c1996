import { randomUUID } from 'node:crypto'
import { problemAnswer } from '../../../functions/api/problem.ts'
import { GatehouseError } from '../../../lib/errors.ts'
import type { Compute } from '../../../lib/store/platform.ts'

/** Why there is no room for more; null while there is. */
export type Lack = () => Promise<string | null>

/** The calls that begin a session, and so work that needs room. */
const begins = ({ method, url }: Request): boolean =>
  (method === 'POST' || method === 'PUT') && /^\/v1\/(sessions\/?$|imports(\/|$))/.test(new URL(url).pathname)

/** The API, but that no session is begun while there is no room; all other calls go on, also those that end something. */
export const withFloor =
  <Rest extends unknown[]>(
    answer: (request: Request, ...rest: Rest) => Response | Promise<Response>,
    lack: Lack,
  ) =>
  async (request: Request, ...rest: Rest): Promise<Response> => {
    const why = begins(request) ? await lack() : null
    if (why === null) return answer(request, ...rest)
    const id = randomUUID()
    const { status, headers, body } = problemAnswer(new GatehouseError('unavailable', why), id)
    return new Response(body, { status, headers: { ...headers, 'x-request-id': id } })
  }

/** Workers, of which none is launched while there is no room: that throws `compute_unavailable`. */
export const launchingWithRoom = (compute: Compute, lack: Lack): Compute => ({
  ...compute,
  launch: async (worker) => {
    const why = await lack()
    if (why !== null) throw new GatehouseError('compute_unavailable', why)
    return compute.launch(worker)
  },
})
