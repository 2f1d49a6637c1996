import { readFile, truncate } from 'node:fs/promises'

/**
 * The JSON values of an append-only file, one a line. A line that a killed process left unfinished is cut off, so that
 * the next append starts on a line of its own; a missing file is empty.
 */
export async function recoverLines(path: string): Promise<unknown[]> {
  const bytes = await readOrEmpty(path)
  const whole = bytes.lastIndexOf(lineFeed) + 1
  if (whole < bytes.length) await truncate(path, whole)
  return parse(bytes.subarray(0, whole))
}

/** The JSON values of an append-only file, one a line, without changing the file. */
export async function readLines(path: string): Promise<unknown[]> {
  return parse(await readOrEmpty(path))
}

const lineFeed = 10

async function readOrEmpty(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

const parse = (bytes: Buffer) => bytes.toString('utf8').split('\n').flatMap(parseLine)

function parseLine(line: string): unknown[] {
  if (line === '') return []
  try {
    return [JSON.parse(line)]
  } catch {
    return []
  }
}
