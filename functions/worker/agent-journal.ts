import { createHash, randomUUID } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentJournal } from '../../lib/journal/agent/write-order.ts'
import { canonical, type DataRef } from '../../lib/journal/entry.ts'
import { besideData, setAside } from '../../lib/session/agent-append.ts'
import {
  type AgentView,
  type Appended,
  type Transcript,
  transcriptSchema,
} from '../../lib/session/agent-protocol.ts'
import type { StatedFact } from '../../lib/session/protocol.ts'
import type { Client } from './client.ts'

/** A record with its data at hand. */
export type WholeFact = StatedFact & { readonly data: Record<string, unknown> }

export type WorkerJournal = ReturnType<typeof createAgentJournal>

/**
 * The journal as an engine writes it (write-order.ts) and reads it again after a restart. Batches go out one at a time, in
 * the order in which they were given. `folder` is private to this worker.
 */
export const createAgentJournal = (
  client: Pick<Client, 'entries' | 'upload' | 'journal' | 'download'>,
  folder: string,
) => {
  let last: Promise<unknown> = Promise.resolve()

  /** Uploads data under the name of its hash, so that a repeat writes the same. */
  const upload = async (text: string): Promise<DataRef> => {
    const sha256 = createHash('sha256').update(text).digest('hex')
    const name = `record-${sha256}.json`
    const file = join(folder, `${randomUUID()}.json`)
    await writeFile(file, text)
    try {
      await client.upload([{ kind: 'artifact', name, file }])
    } finally {
      await rm(file, { force: true })
    }
    return { artifact: name, bytes: Buffer.byteLength(text), sha256 }
  }

  const send = async (batchId: string, facts: readonly WholeFact[]): Promise<Appended> => {
    const texts = facts.map(({ data }) => canonical(data))
    const sizes = texts.map((text) => Buffer.byteLength(text))
    const aside = setAside(sizes, besideData(facts))
    const stated: StatedFact[] = []
    for (const [at, fact] of facts.entries()) {
      const { data, ...rest } = fact
      stated.push(aside.has(at) ? { ...rest, data_ref: await upload(texts[at] ?? '') } : fact)
    }
    return client.entries(batchId, stated)
  }

  /**
   * Appends a batch, all or nothing; resolves once it is durable. A repeat with the same name is answered as the first was.
   * Throws `Refused` for a batch that can't be appended, and whatever else once the lease is lost: then nothing more is.
   */
  const append = (batchId: string, facts: readonly WholeFact[]): Promise<Appended> => {
    const sent = last.then(() => send(batchId, facts))
    last = sent.catch(() => {})
    return sent
  }

  const transcriptAt = async (url: string): Promise<Transcript> => {
    const file = join(folder, `${randomUUID()}.json`)
    try {
      await client.download(url, file)
      return transcriptSchema.parse(JSON.parse(await readFile(file, 'utf8')))
    } finally {
      await rm(file, { force: true })
    }
  }

  const journal: AgentJournal = {
    append: async (batch) => {
      await append(randomUUID(), batch)
    },
  }

  return {
    ...journal,
    appendAs: append,

    /** What the records come to, for an engine to go on from. */
    state: async (): Promise<AgentView & Transcript> => {
      const { transcript, ...view } = await client.journal()
      return { ...view, ...('url' in transcript ? await transcriptAt(transcript.url) : transcript) }
    },

    /** Resolves when no batch is under way. */
    settled: async (): Promise<void> => {
      await last
    },
  }
}
