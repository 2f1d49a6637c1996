/** The state that an execution is in, as its context object tells it. */
export interface CurrentState {
  name: string
  /** ISO 8601. */
  enteredTime: string
  /** Attempts at its task that have begun. */
  attempts: number
}

/** What of an execution its context object tells in every state. */
export interface ExecutionFacts {
  arn: string
  name: string
  roleArn: string
  input: unknown
  /** Milliseconds since the epoch. */
  startDate: number
  machine: { arn: string; name: string }
}

/** The `$$` object of one execution. */
export class ExecutionContext {
  #state: CurrentState = { name: '', enteredTime: '', attempts: 0 }
  #token: string | undefined
  readonly #facts: ExecutionFacts
  readonly #mint: () => string

  constructor(facts: ExecutionFacts, mint: () => string) {
    this.#facts = facts
    this.#mint = mint
  }

  get state(): CurrentState {
    return this.#state
  }

  enter(name: string): void {
    this.#state = { name, enteredTime: new Date().toISOString(), attempts: 0 }
    this.#token = undefined
  }

  /** Is again in a state that was entered before. */
  return(state: CurrentState): void {
    this.#state = { ...state }
  }

  /** The token that the attempt starting now was given in its parameters; minted when they didn't ask for it. */
  beginAttempt(): string {
    const token = this.#currentToken()
    this.#token = undefined
    this.#state.attempts += 1
    return token
  }

  /** For an attempt that began before: its parameters were made once more, and the token in them is nobody's. */
  continueAttempt(): void {
    this.#token = undefined
  }

  /** Getters, because the interpreter keeps these objects and reads them in each state. */
  asObject() {
    const { arn, name, roleArn, input, startDate, machine } = this.#facts
    const state = () => this.#state
    const token = () => this.#currentToken()
    return {
      Execution: {
        Id: arn,
        Input: input,
        Name: name,
        RoleArn: roleArn,
        StartTime: new Date(startDate).toISOString(),
      },
      StateMachine: { Id: machine.arn, Name: machine.name },
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
