/**
 * Asks for the same thing once for all who want it at the same time. Who asks while an answer is under way shares the
 * next one, so that nobody is given what was true before it asked. Nothing is kept of an answer.
 */
export const createShared = <Result>() => {
  const running = new Map<string, Promise<Result>>()
  const waiting = new Map<string, Promise<Result>>()

  const begin = (key: string, ask: () => Promise<Result>): Promise<Result> => {
    waiting.delete(key)
    const answer = ask().finally(() => {
      if (running.get(key) === answer) running.delete(key)
    })
    running.set(key, answer)
    return answer
  }

  return (key: string, ask: () => Promise<Result>): Promise<Result> => {
    const before = running.get(key)
    if (!before) return begin(key, ask)
    const going = () => begin(key, ask)
    const next = waiting.get(key) ?? before.then(going, going)
    waiting.set(key, next)
    return next
  }
}
