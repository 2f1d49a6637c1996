interface Graph {
  StartAt: string
  States: Record<string, State>
}
interface State {
  Type: string
  Next?: string | undefined
  End?: true | undefined
  Default?: string | undefined
  Choices?: Record<string, unknown>[] | undefined
  Catch?: { Next: string }[] | undefined
}

/** What is wrong with the way from state to state: missing targets, dead ends, states that nothing leads to. */
export function transitionProblems({ StartAt, States }: Graph): string[] {
  const names = new Set(Object.keys(States))
  const reached = new Set([StartAt])
  for (const name of reached) for (const target of targetsOf(States[name])) reached.add(target)
  return [
    ...[...reached].filter((name) => !names.has(name)).map((name) => `there is no state "${name}" to go to`),
    ...[...names].filter((name) => !reached.has(name)).map((name) => `state "${name}": nothing leads to it`),
    ...Object.entries(States)
      .filter(([, state]) => goesOn.has(state.Type) && (state.Next === undefined) !== (state.End === true))
      .map(([name]) => `state "${name}": it needs either Next or End`),
  ]
}

const goesOn = new Set(['Task', 'Pass', 'Wait'])

function targetsOf(state: State | undefined): string[] {
  if (!state) return []
  const choices = (state.Choices ?? []).map((rule) => rule.Next)
  const catchers = (state.Catch ?? []).map((catcher) => catcher.Next)
  return [state.Next, state.Default, ...choices, ...catchers].filter((next) => typeof next === 'string')
}
