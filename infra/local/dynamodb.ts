import { mkdir } from 'node:fs/promises'
import dynalite from 'dynalite'
import database from 'dynalite/db/index.js'
import { guardJson } from './doors/json-door.ts'
import type { KeyPair } from './doors/key-pair.ts'
import { closeIteratorsWhenRead } from './dynamodb-iterators.ts'
import { writeIndexesAtomically } from './dynamodb-writes.ts'
import { listenOnLoopback, stopServer } from './loopback.ts'
import { withAnsweredFaults } from './storage/database-faults.ts'
import { openFault, requireWholeFolder } from './storage/database-folder.ts'

/**
 * Starts DynamoDB on 127.0.0.1, for requests that are signed with `keys`. `path` is a folder that keeps the tables (made when missing, held by one process
 * at a time); without it they live in memory. A write and its index entries are all or nothing. `port` 0 or absent
 * takes a free one. Rejects, with the cause, when the port is taken or
 * the folder is held by another process, is damaged, or has no room. Faults of the disk later are answers: 503 when it is full.
 */
export async function startDynamoDb(options: { keys: KeyPair; path?: string; port?: number }): Promise<{
  endpoint: string
  close(): Promise<void>
}> {
  if (options.path) await requireFolder(options.path)
  writeIndexesAtomically()
  closeIteratorsWhenRead()
  const { path } = options
  const times = { createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 }
  const server = path ? withAnsweredFaults(path, () => dynalite({ path, ...times })) : dynalite(times)
  guardJson(server, { keys: options.keys, service: 'dynamodb' })
  const endpoint = await listenOnLoopback(server, options.port)
  return { endpoint, close: () => stopServer(server) }
}

// dynalite opens its folder lazily and throws, outside of any handler, when it can't.
async function requireFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true })
  await requireWholeFolder(path)
  const { db } = database.create({ path })
  try {
    await db.open()
  } catch (error) {
    throw openFault(path, error)
  }
  await db.close()
}
