/** One holder a key at a time, in the order they asked. Nothing stays behind for a key that nobody holds. */
export class KeyLocks {
  readonly #last = new Map<string, Promise<void>>()

  /** Runs `work` while holding `key`; its result, or its error, is the caller's. */
  async hold<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    this.#last.set(key, released)
    await before
    try {
      return await work()
    } finally {
      if (this.#last.get(key) === released) this.#last.delete(key)
      release()
    }
  }
}
