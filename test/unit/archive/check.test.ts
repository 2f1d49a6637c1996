import { hash, randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkArchive } from '../../../lib/archive/check.ts'
import { ArchiveError } from '../../../lib/archive/error.ts'
import { manifestSchema } from '../../../lib/archive/manifest.ts'
import { packArchive } from '../../../lib/archive/pack.ts'
import { nameOfContent } from '../../../lib/artifact-name.ts'
import { newId } from '../../../lib/ids.ts'
import { refOf } from '../../../lib/journal/data-ref.ts'
import { canonical, type Entry, fromLine, type Statement, sha256 } from '../../../lib/journal/entry.ts'
import { limits } from '../../../lib/limits.ts'
import { described, type Made, madeOf, packed, replaced, rewritten, tarred } from '../../support/archives.ts'
import { sessionThat, theEnd } from '../../support/finished.ts'
import { sha } from '../../support/sessions.ts'
import { userSays } from '../journal/agent/walk.ts'

const team = 'team'
const said = { message: userSays(1) }
const data_ref = refOf(canonical(said))
const bundle = 'the bytes of a bundle'
const work: Statement[] = [
  { type: 'error', data: { message: 'seen and passed over' } },
  { type: 'message_committed', data: said, context: { data_ref } },
  {
    type: 'checkpoint_created',
    data: {
      ...{ id: 'one', commit: sha('c'), tree: sha('d'), bundle: 'one.bundle' },
      bundle_sha256: sha256(bundle).slice('sha256:'.length),
    },
  },
]
const named = (base: string, text: string, extension: string) =>
  nameOfContent(base, hash('sha256', text), extension)
const log = 'what the engine printed'
const logName = named('engine-1', log, 'log')
const patch = 'a patch'
const patchName = named('review-1', patch, 'patch')
const body = (patch_artifact: string) =>
  canonical({
    ...{ changed_paths: [], contract_overlap: [], overlap_disclosure: null, patch },
    ...{ patch_truncated: false, patch_full_bytes: patch.length, patch_artifact },
  })
const bodyName = named('review-1', body(patchName), 'json')
const others = {
  [`artifacts/${data_ref.artifact}`]: canonical(said),
  'artifacts/log.txt': 'what a check printed',
  'bundles/one.bundle': bundle,
}
const item = sessionThat({ team, id: newId('ses') }, [...work, ...theEnd])
const lines = item.outbox.map(({ line }) => line)
const made = madeOf(item, lines, others)

const files = ({ manifest }: Made) => z.array(z.object({ path: z.string() }).loose()).parse(manifest.files)
const check = (bytes: Uint8Array) => checkArchive(ReadableStream.from([bytes]), team)
const found = async (bytes: Uint8Array | Promise<Uint8Array>): Promise<string> => {
  try {
    return (await check(await bytes)).fingerprint
  } catch (error) {
    if (error instanceof ArchiveError) return `refused: ${error.message}`
    throw error
  }
}

const without = (path: string): Made =>
  described({ ...made, files: made.files.filter((f) => f.path !== path) })
const withManifest = (more: Record<string, unknown>) =>
  packed({ ...made, manifest: { ...made.manifest, ...more } })
const withDocument = (more: Record<string, unknown>) =>
  packed(replaced(made, 'document.json', (text) => canonical({ ...JSON.parse(text), ...more })))
const withEntries = (change: (entries: Entry[]) => Entry[]) => packed(rewritten(made, change))
const inTar = (files: Made['files']) => packed({ ...made, files })

it('a whole archive is the session that it is of', async () => {
  const checked = await check(await packed(made))
  expect(checked.document).toEqual(item.document)
  expect(checked).toMatchObject({ head: item.journal_head, agent_sequence: 2, lifecycle_records: 5 })
  expect([...checked.written.keys()]).toEqual([...Object.keys(others), 'journal/0'])
})

describe('refused is what is no archive:', () => {
  it.each<[string, Buffer | Promise<Buffer>]>([
    ['nothing', Buffer.alloc(0)],
    ['a text', Buffer.from('{"format":"gatehouse-session"}')],
    ['gzip of nothing', gzipSync('')],
    ['gzip of a text', gzipSync('x'.repeat(3000))],
    ['a tar that is not compressed', tarred(made)],
    ['one that was cut off', packed(made).then((bytes) => bytes.subarray(0, -20))],
    ['a tar that was cut off', tarred(made).then((tar) => gzipSync(tar.subarray(0, tar.length - 1536)))],
    ['one with junk behind it', packed(made).then((bytes) => Buffer.concat([bytes, Buffer.from('junk')]))],
    [
      'a tar with junk behind it',
      tarred(made).then((tar) => gzipSync(Buffer.concat([tar, Buffer.from('x')]))),
    ],
  ])('%s', async (_, bytes) => {
    expect(await found(bytes)).toMatch(/^refused: it is (no whole gzipped tar file|empty)$/)
  })
})

describe('refused by its manifest is one', () => {
  it.each<[string, Promise<Buffer>, RegExp]>([
    ['of another format', withManifest({ format: 'zip' }), /not the archive of a session/],
    ['of another version', withManifest({ format_version: 2 }), /version 2 is not supported/],
    ['with an unknown member', withManifest({ note: 'x' }), /manifest is not valid.*note/],
    [
      'that is written otherwise',
      packed(made, JSON.stringify(made.manifest, null, 1)),
      /not written canonically/,
    ],
    ['that is no JSON', packed(made, '{'), /not JSON/],
    ['with another count', withManifest({ entries: lines.length + 1 }), /another number of entries/],
    [
      'with too high a count',
      withManifest({ entries: limits.archive.entries + 1 }),
      /manifest is not valid, entries/,
    ],
    ['with another head', withManifest({ head: { ...item.journal_head, sequence: 99 } }), /head is entry 99/],
    [
      'of another session',
      withManifest({ session_id: newId('ses') }),
      /belongs to another session|of another session/,
    ],
    ['of another team', withManifest({ team: 'other' }), /another team, other/],
    [
      'whose files are not in order',
      packed(described({ ...made, files: made.files.toReversed() })),
      /in order/,
    ],
    ['without a document', packed(without('document.json')), /the first is document.json/],
    ['without a journal', packed(without('journal.jsonl')), /the last journal.jsonl/],
  ])('%s', async (_, bytes, message) => {
    expect(await found(bytes)).toMatch(message)
  })

  it.each([
    '../x',
    '/etc/x',
    'artifacts/../../x',
    'artifacts/a/b',
    'other/x',
    'artifacts/',
    'artifacts/.x',
    'x',
  ])('that names the path %s', async (path) => {
    const [first, ...rest] = made.files
    const files = [...(first ? [first] : []), { path, body: Buffer.from('x') }, ...rest]
    expect(await found(packed(described({ ...made, files })))).toMatch(/manifest is not valid, files/)
  })
})

describe('refused is one whose files are not the manifest’s:', () => {
  const [first, second, ...rest] = made.files
  if (!first || !second) throw new Error('there are some')
  it.each<[string, Made['files']]>([
    ['one is missing', [first, ...rest]],
    ['the last is missing', made.files.slice(0, -1)],
    ['one stands twice', [first, second, second, ...rest]],
    ['one leads elsewhere', [first, { ...second, path: '../../x' }, ...rest]],
    ['two are exchanged', [second, first, ...rest]],
    ['one more stands behind them', [...made.files, { path: 'x', body: Buffer.from('x') }]],
    ['one is longer', [first, { ...second, body: Buffer.concat([second.body, Buffer.from('x')]) }, ...rest]],
    ['one has other bytes', [{ ...first, body: Buffer.alloc(first.body.length, 'x') }, second, ...rest]],
    ['one is a link', [first, { ...second, header: { type: 'symlink', linkname: '/etc/passwd' } }, ...rest]],
    ['one is a folder', [first, { ...second, header: { type: 'directory' } }, ...rest]],
  ])('%s', async (_, files) => {
    expect(await found(inTar(files))).toMatch(
      /^refused: .*(should stand|is missing|more than its manifest|not what the)/,
    )
  })
})

describe('refused is one whose document', () => {
  it.each<[string, Promise<Buffer>, RegExp]>([
    ['is no JSON', packed(replaced(made, 'document.json', () => '{')), /document is not JSON/],
    ['has an unknown member', withDocument({ more: 1 }), /document is not valid.*more/],
    [
      'is not what the journal comes to',
      withDocument({ intent: 'Something else' }),
      /folds to another state/,
    ],
    ['is of another session', withDocument({ id: newId('ses') }), /of another session/],
    ['is of another team', withDocument({ team: 'other' }), /of another session/],
  ])('%s', async (_, bytes, message) => {
    expect(await found(bytes)).toMatch(message)
  })

  it('had not ended', async () => {
    const live = sessionThat({ team, id: newId('ses') }, work)
    const bytes = packed(
      madeOf(
        live,
        live.outbox.map(({ line }) => line),
        others,
      ),
    )
    expect(await found(bytes)).toMatch(/had not ended/)
    const halfway = sessionThat({ team, id: newId('ses') }, [...work, ...theEnd.slice(0, 2)])
    expect(
      await found(
        packed(
          madeOf(
            halfway,
            halfway.outbox.map(({ line }) => line),
            others,
          ),
        ),
      ),
    ).toMatch(/had not ended/)
  })
})

/** Two lines exchange their keys' order, and the hash is that of the bytes as they stand: only canonical form is broken. */
const uncanonical = (): Promise<Buffer> => {
  const entry = fromLine(lines.at(-1) ?? '')
  const { hash: _, ...rest } = entry
  const swap = (text: string) => text.replace(/^\{"actor":(\{[^}]*\}),("branch":"main"),/, '{$2,"actor":$1,')
  const digest = sha256(swap(canonical(rest)))
  const line = swap(canonical({ ...rest, hash: digest }))
  const changed = replaced(made, 'journal.jsonl', () => `${[...lines.slice(0, -1), line].join('\n')}\n`)
  const head = { sequence: entry.sequence, hash: digest }
  return packed({ ...changed, manifest: { ...changed.manifest, head } })
}

describe('refused is one whose journal', () => {
  const journal = (change: (lines: string[]) => string[]) =>
    packed(replaced(made, 'journal.jsonl', () => `${change([...lines]).join('\n')}\n`))
  it.each<[string, Promise<Buffer>, RegExp]>([
    ['lacks an entry', journal((all) => all.toSpliced(1, 1)), /fails at entry 1: entry 1 is expected/],
    ['has one twice', journal((all) => all.toSpliced(1, 0, all[1] ?? '')), /fails at entry 2/],
    ['is in another order', journal(([a = '', b = '', ...more]) => [b, a, ...more]), /fails at entry 0/],
    [
      'was changed',
      journal((all) => all.map((line) => line.replace('seen', 'hidden'))),
      /not the one that was hashed/,
    ],
    ['ends early', journal((all) => all.slice(0, -1)), /head is entry/],
    ['has an empty line', journal((all) => all.toSpliced(1, 0, '')), /is no entry/],
    ['has a line that is no entry', journal((all) => all.toSpliced(1, 1, '{"a":1}')), /is no entry/],
    ['is not UTF-8', packed(replaced(made, 'journal.jsonl', () => '')).then(() => notUtf8()), /not UTF-8/],
    ['is empty', packed(replaced(made, 'journal.jsonl', () => '')), /head is entry/],
    ['is not written canonically', uncanonical(), /not written canonically/],
    [
      'tells another story, hashed anew',
      withEntries((entries) =>
        entries.map((one) =>
          one.type === 'session_cancelled' ? { ...one, data: { reason: 'x', by: 'eve' } } : one,
        ),
      ),
      /folds to another state/,
    ],
    [
      'has a record that nobody knows',
      withEntries((entries) =>
        entries.map((one) => (one.kind === 'event' ? { ...one, kind: 'record' as const, type: 'new' } : one)),
      ),
      /record new is not understood/,
    ],
    [
      'has a record with an unknown member',
      withEntries((entries) =>
        entries.map((one) =>
          one.type === 'execution_stopped' ? { ...one, data: { ...one.data, x: 1 } } : one,
        ),
      ),
      /execution_stopped is not understood/,
    ],
    [
      'has a record of the agent that can’t stand there',
      withEntries((entries) => [
        ...entries,
        ...entries
          .filter(({ type }) => type === 'message_committed')
          .map((one) => ({ ...one, id: newId('evt') })),
      ]),
      /DuplicateEntity/,
    ],
  ])('%s', async (_, bytes, message) => {
    expect(await found(bytes)).toMatch(message)
  })
})

const notUtf8 = (): Promise<Buffer> =>
  packed(
    described({
      ...made,
      files: made.files.map((file) =>
        file.path === 'journal.jsonl' ? { ...file, body: Buffer.from([0x7b, 0xff, 0x0a]) } : file,
      ),
    }),
  )

describe('refused is one in which something referred to', () => {
  const data = `artifacts/${data_ref.artifact}`
  it.each<[string, Promise<Buffer>, RegExp]>([
    ['is missing', packed(without(data)), /to which an entry refers, is missing/],
    [
      'is another',
      packed(replaced(made, data, (text) => text.replace('message 1', 'message 2'))),
      /not what its name says/,
    ],
    [
      'is a missing bundle',
      packed(without('bundles/one.bundle')),
      /bundles.one.bundle, which an entry names, is missing/,
    ],
    [
      'is another bundle',
      packed(replaced(made, 'bundles/one.bundle', () => 'x')),
      /bundles.one.bundle is not what an entry names/,
    ],
  ])('%s', async (_, bytes, message) => {
    expect(await found(bytes)).toMatch(message)
  })
})

describe('what grows without end is cut off', () => {
  it('when it is unpacked, and no more of it is asked for', async () => {
    const zeros = made.files.map((file) =>
      file.path === 'artifacts/log.txt' ? { ...file, body: Buffer.alloc(32 * 1024 * 1024) } : file,
    )
    const bomb = await packed(described({ ...made, files: zeros }))
    let given = 0
    async function* inPieces() {
      for (; given < bomb.length; given += 1024) yield new Uint8Array(bomb.subarray(given, given + 1024))
    }
    const check = checkArchive(ReadableStream.from(inPieces()), team, {
      ...limits.archive,
      unpacked: 500_000,
    })
    await expect(check).rejects.toThrow('it unpacks to more than 500000 bytes')
    expect(given).toBeLessThan(bomb.length / 2)
  })

  it.each([
    ['document.json', limits.archive.document],
    ['artifacts/log.txt', limits.archive.file],
  ])('when %s alone is too large', async (path, most) => {
    const large = files(made).map((file) => (file.path === path ? { ...file, bytes: most + 1 } : file))
    const named = { ...made, manifest: { ...made.manifest, files: large } }
    const longer = named.files.map((file) =>
      file.path === path ? { ...file, body: Buffer.alloc(most + 1) } : file,
    )
    const tar = packed({ ...named, files: longer })
    expect(await found(tar)).toMatch(`${path} is larger than ${most} bytes`)
  })

  it('when it is read', async () => {
    const source = ReadableStream.from([await packed(made)])
    const check = checkArchive(source, team, { ...limits.archive, bytes: 500 })
    await expect(check).rejects.toThrow('it holds more than 500 bytes')
  })

  it('and what nobody reads any more is not read from its source', async () => {
    const ended = Promise.withResolvers<boolean>()
    async function* content() {
      try {
        for (;;) yield new Uint8Array(randomBytes(65_536))
      } finally {
        ended.resolve(true)
      }
    }
    const file = { path: 'artifacts/endless', bytes: 2 ** 40, content }
    const reader = packArchive(manifestSchema.parse(made.manifest), [file]).getReader()
    await reader.read()
    await reader.cancel()
    expect(await ended.promise).toBe(true)
  })

  it('and what the source itself throws is told as it is', async () => {
    const bytes = await packed(made)
    const source = ReadableStream.from(
      (async function* broken() {
        yield new Uint8Array(bytes.subarray(0, 600))
        throw new RangeError('the store is away')
      })(),
    )
    await expect(checkArchive(source, team)).rejects.toThrow(RangeError)
  })
})

it('a flipped bit is refused, wherever it is, or it is still the very same session', async () => {
  const bytes = await packed(made)
  const whole = await found(bytes)
  expect(whole).toMatch(/^sha256:/)
  const same: number[] = []
  for (let at = 0; at < bytes.length; at += at < 30 ? 1 : 3) {
    const damaged = Buffer.from(bytes)
    damaged.writeUInt8(damaged.readUInt8(at) ^ (1 << (at % 8)), at)
    const outcome = await found(damaged)
    if (outcome === whole) same.push(at)
    else expect(outcome).toMatch(/^refused: /)
  }
  // What gzip's header says of time, system and effort, and a few bits that the format leaves open, mean nothing.
  expect(same.length).toBeLessThan(bytes.length / 50)
}, 60_000)

describe('refused is one where a file that an entry names', () => {
  const setUp: Statement = {
    type: 'setup_completed',
    data: { command: 'make', ok: true, output_head: '', output_tail: '', artifact: logName },
  }
  const review: Statement = {
    type: 'diff_ready',
    data: {
      review: {
        ...{ review_id: newId('rev'), kind: 'change', contract_hash: 'sha256:c' },
        ...{ base: sha('a'), commit: sha('c'), tree: sha('d') },
      },
      stat: { files: 1, insertions: 1, deletions: 0 },
      patch_full_bytes: patch.length,
      disclosed: [],
      body_artifact: bodyName,
      checkpoint: { id: 'one', commit: sha('c'), tree: sha('d'), bundle: null, bundle_sha256: null },
    },
  }
  const foreign = body('review-2.patch')
  const files = {
    [`artifacts/${logName}`]: log,
    [`artifacts/${bodyName}`]: body(patchName),
    [`artifacts/${patchName}`]: patch,
  }
  const told = sessionThat({ team, id: newId('ses') }, [setUp, review, ...theEnd])
  const archive = (kept: Record<string, string>) =>
    found(
      packed(
        madeOf(
          told,
          told.outbox.map(({ line }) => line),
          Object.fromEntries(Object.entries(kept).sort(([a], [b]) => (a < b ? -1 : 1))),
        ),
      ),
    )
  it('is missing or another, and none else', async () => {
    expect(await archive(files)).toMatch(/^sha256:/)
    for (const [path, text] of Object.entries(files)) {
      const { [path]: _, ...rest } = files
      expect(await archive(rest), path).toMatch(/^refused: .*is missing/)
      expect(await archive({ ...rest, [path]: `${text} ` }), path).toMatch(
        /^refused: .*not what its name says/,
      )
    }
    expect(await archive({ ...files, [`artifacts/${bodyName}`]: foreign })).toMatch(/^refused: /)
  })
})
