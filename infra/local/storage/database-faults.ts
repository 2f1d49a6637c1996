import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import database, { type Database, type Done } from 'dynalite/db/index.js'
import { limits } from '../../../lib/limits.ts'
import { freeBytes, isDiskFull, noRoom } from './room.ts'

const create = database.create

/** An error that dynalite answers as DynamoDB does, instead of throwing it outside of any handler. */
const answerable = (error: Error): Error => {
  if ('statusCode' in error || error.name === 'NotFoundError') return error
  const body = isDiskFull(error)
    ? { __type: 'com.amazon.coral.service#ServiceUnavailableException', message: noRoom }
    : { __type: 'com.amazonaws.dynamodb.v20120810#InternalServerError', message: error.message }
  // A new error: of one that says that a value does not decode, dynalite deletes the table.
  const told = new Error('the database failed', { cause: error })
  return Object.assign(told, { statusCode: isDiskFull(error) ? 503 : 500, body })
}

const telling =
  <Value>(done: Done<Value>, failed?: () => void): Done<Value> =>
  (error, value) => {
    if (error) failed?.()
    done(error ? answerable(error) : error, value)
  }

/** Makes the database's faults answers; `failed` is told of each write that failed. */
const tellFaults = (db: Database, failed: () => void): void => {
  const { put, get, del, batch, values } = db
  // LevelDB calls these of itself as well, without a callback, and wants the promise.
  db.get = (key, done) => get(key, typeof done === 'function' ? telling(done) : done)
  db.put = (key, value, done) => put(key, value, typeof done === 'function' ? telling(done, failed) : done)
  db.del = (key, done) => del(key, typeof done === 'function' ? telling(done, failed) : done)
  db.batch = (writes, done) => batch(writes, typeof done === 'function' ? telling(done, failed) : done)
  db.values = (options) => {
    const iterator = values.call(db, options)
    const next = iterator.next.bind(iterator)
    iterator.next = () =>
      next().catch((error: unknown) => {
        throw error instanceof Error ? answerable(error) : error
      })
    return iterator
  }
}

/**
 * Makes `start` a DynamoDB whose faults are answers: 503 when the disk is full, 500 for what else the files below do.
 * LevelDB takes no write after one that failed until it is opened anew. That is done before the next request once there
 * is room again, and when no other request is in hand; until then everything is read as before.
 */
export const withAnsweredFaults = (path: string, start: () => Server): Server => {
  const held: { db?: Database } = {}
  let failed = false
  database.create = (options) => {
    const store = create(options)
    held.db = store.db
    tellFaults(store.db, () => {
      failed = true
    })
    return store
  }
  let server: Server
  try {
    server = start()
  } finally {
    database.create = create
  }

  let inHand = 0
  let idle = Promise.withResolvers<void>()
  let mending: Promise<void> | undefined
  const mend = async (): Promise<void> => {
    const { db } = held
    if (!db || (await freeBytes(path)) < limits.disk.reopen) return
    if (inHand > 0) await idle.promise
    await db.close._original()
    await db.open()
    failed = false
  }
  /** True when the database can be asked. */
  const ready = async (): Promise<boolean> => {
    if (failed) {
      mending ??= mend().finally(() => {
        mending = undefined
      })
      await mending.catch(() => {})
    }
    return held.db?.status !== 'closed'
  }
  const [answer] = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    if (failed && !(await ready())) return unavailable(response)
    if (inHand++ === 0) idle = Promise.withResolvers()
    response.once('close', () => {
      if (--inHand === 0) idle.resolve()
    })
    answer?.call(server, request, response)
  })
  return server
}

const unavailable = (response: ServerResponse): void => {
  const body = { __type: 'com.amazon.coral.service#ServiceUnavailableException', message: noRoom }
  response.writeHead(503, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body))
}
