/** The `$$` object of one execution; the interpreter adds `Execution.Input` and `Execution.StartTime`. */
export class ExecutionContext {
  #state = { name: '', enteredTime: '', attempts: 0 }
  #token: string | undefined
  readonly #execution: { arn: string; name: string; roleArn: string }
  readonly #machine: { arn: string; name: string }
  readonly #mint: () => string

  constructor(
    execution: { arn: string; name: string; roleArn: string },
    machine: { arn: string; name: string },
    mint: () => string,
  ) {
    this.#execution = execution
    this.#machine = machine
    this.#mint = mint
  }

  enter(name: string): void {
    this.#state = { name, enteredTime: new Date().toISOString(), attempts: 0 }
    this.#token = undefined
  }

  /** The token that the attempt starting now was given in its parameters; minted when they didn't ask for it. */
  beginAttempt(): string {
    const token = this.#currentToken()
    this.#token = undefined
    this.#state.attempts += 1
    return token
  }

  /** Getters, because the interpreter keeps these objects and reads them in each state. */
  asObject() {
    const state = () => this.#state
    const token = () => this.#currentToken()
    return {
      Execution: { Id: this.#execution.arn, Name: this.#execution.name, RoleArn: this.#execution.roleArn },
      StateMachine: { Id: this.#machine.arn, Name: this.#machine.name },
      State: {
        get Name() {
          return state().name
        },
        get EnteredTime() {
          return state().enteredTime
        },
        get RetryCount() {
          return state().attempts
        },
      },
      Task: {
        get Token() {
          return token()
        },
      },
    }
  }

  #currentToken(): string {
    this.#token ??= this.#mint()
    return this.#token
  }
}
