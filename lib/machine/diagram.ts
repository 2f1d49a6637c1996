import { lifecycle, type Transition } from '../session/lifecycle.ts'
import { isTerminal, type State, type Step, stateSchema, stepSchema, steps } from '../session/states.ts'

const rows: readonly Transition[] = lifecycle
const live = stateSchema.options.filter((state) => !isTerminal(state))

type Arrow = { from: State; to: State; trigger: string; by: readonly string[] }

/** The moves between states as they are seen from outside; a trigger that leaves the state alone is none. */
const arrows = (): Arrow[] =>
  rows.flatMap(({ trigger, from, to, by }) =>
    to === 'same' ? [] : from.map((state) => ({ from: state, to, trigger, by })),
  )

/** A trigger that is legal in every live state would hide all others: it is drawn once, from a state that stands for them. */
const isCommon = ({ trigger }: Arrow): boolean =>
  live.every((state) => arrows().some((arrow) => arrow.trigger === trigger && arrow.from === state))

const line = (from: string, { to, trigger, by }: Arrow): string =>
  `  ${from} --> ${to}: ${trigger} (${by.join(' or ')})`

/** The life of a session as a Mermaid state diagram: its states, and by what and by whom they change. */
export const stateDiagram = (): string => {
  const special = arrows().filter((arrow) => !isCommon(arrow))
  const common = arrows().filter((arrow) => isCommon(arrow) && arrow.from === live[0])
  return [
    'stateDiagram-v2',
    '  state "any state with an exit" as live',
    `  [*] --> ${live[0]}`,
    ...special.map((arrow) => line(arrow.from, arrow)),
    ...common.map((arrow) => line('live', arrow)),
    ...stateSchema.options.filter(isTerminal).map((state) => `  ${state} --> [*]`),
  ].join('\n')
}

const runBy = {
  handler: 'the machine',
  worker: 'a worker',
  gate: 'a person',
  admission: 'the queue',
  wait: 'the clock',
} as const

/** Where a step's own triggers lead; those that can come at every step are told once, below the table. */
const onward = (step: Step): string =>
  [
    ...new Set(
      rows
        .filter((row) => row.at === step && row.next !== 'same')
        .map(({ next }) => (next === 'held' ? 'the step held back' : next)),
    ),
  ].join(', ') || '–'

/** The machine's steps as a Markdown table, in the order in which a session meets them. */
export const stepTable = (): string =>
  [
    '| step | stage | run by | what for | goes on to |',
    '|---|---|---|---|---|',
    ...stepSchema.options.map((step) => {
      const { stage, kind, purpose } = steps[step]
      return `| ${step} | ${stage} | ${runBy[kind]} | ${purpose} | ${onward(step)} |`
    }),
  ].join('\n')

export const lifecycleMarks = {
  begin: '<!-- lifecycle:begin -->',
  end: '<!-- lifecycle:end -->',
} as const

/**
 * A page with the part between the marks made anew from the lifecycle; everything else stays as it is. Throws an Error
 * when the page does not hold both marks, in order.
 */
export const withLifecycle = (page: string): string => {
  const begin = page.indexOf(lifecycleMarks.begin)
  const end = page.indexOf(lifecycleMarks.end)
  if (begin < 0 || end < begin)
    throw new Error(`the page has to hold ${lifecycleMarks.begin} and ${lifecycleMarks.end}, in this order`)
  const note = 'Made from `lib/session/lifecycle.ts` by `npm run diagram`.'
  const common =
    'Every step can also be followed by Settle (the session failed or was cancelled) or by itself (a fault was recovered from), and the last one of the stage that `until` names by Rest.'
  const part = `\n${note}\n\n\`\`\`mermaid\n${stateDiagram()}\n\`\`\`\n\n${stepTable()}\n\n${common}\n\n`
  return page.slice(0, begin + lifecycleMarks.begin.length) + part + page.slice(end)
}
