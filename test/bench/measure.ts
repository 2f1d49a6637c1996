/** Milliseconds that some work takes. */
export const time = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** Milliseconds of the processor's time that some work takes, for work that waits for nothing. */
export const cpuTime = async (work: () => Promise<unknown>): Promise<number> => {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/**
 * Measures two ways of doing one thing in turns, so that whatever else the machine does meets both alike; the medians
 * of `rounds`, after one round that does not count. `clock` tells what one round takes.
 */
export const compare = async (
  rounds: number,
  ours: (round: number) => Promise<unknown>,
  bare: (round: number) => Promise<unknown>,
  clock: (work: () => Promise<unknown>) => Promise<number> = time,
) => {
  const times = { ours: [] as number[], bare: [] as number[] }
  for (let round = 0; round <= rounds; round++) {
    const [own, other] = [await clock(() => ours(round)), await clock(() => bare(round))]
    if (round === 0) continue
    times.ours.push(own)
    times.bare.push(other)
  }
  return { ours: median(times.ours), bare: median(times.bare) }
}

const verdict = (aim: string, isMet: boolean): string => `   aim ${aim}: ${isMet ? 'met' : 'missed'}`

/** One row of the report for a figure that is compared with nothing but its aim. */
export const figure = (what: string, said: string, aim?: { text: string; isMet: boolean }): string =>
  `${what.padEnd(58)} ${said.padStart(12)}${aim ? verdict(aim.text, aim.isMet) : ''}`

/** One row of the report: both times and their ratio, with the ratio that is aimed at. */
export const row = (what: string, result: { ours: number; bare: number }, aim?: number): string => {
  const ratio = result.ours / result.bare
  const aimed = aim === undefined ? '' : verdict(`< ${aim}×`, ratio < aim)
  return `${what.padEnd(58)} ${result.ours.toFixed(1).padStart(9)} ms ${result.bare.toFixed(1).padStart(9)} ms ${ratio.toFixed(2).padStart(6)}×${aimed}`
}
