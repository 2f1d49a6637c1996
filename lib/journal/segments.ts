import { limits } from '../limits.ts'

/** Lines that make one segment of a journal, with the sequence of the first. */
export type Segment = { first: number; lines: string[] }

/** Cuts a journal's lines into segments of at most a batch; the same lines are always cut the same. */
export async function* segmentsOf(lines: AsyncIterable<string> | Iterable<string>): AsyncGenerator<Segment> {
  const { entries, bytes: most } = limits.journalBatch
  let segment: Segment = { first: 0, lines: [] }
  let bytes = 0
  for await (const line of lines) {
    const length = Buffer.byteLength(line)
    if (segment.lines.length > 0 && (segment.lines.length === entries || bytes + length > most)) {
      yield segment
      segment = { first: segment.first + segment.lines.length, lines: [] }
      bytes = 0
    }
    segment.lines.push(line)
    bytes += length
  }
  if (segment.lines.length > 0) yield segment
}

/** The bytes of a segment. */
export const segmentText = ({ lines }: Segment): string => lines.map((line) => `${line}\n`).join('')
