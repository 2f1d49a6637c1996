declare module 'asl-validator' {
  /** Checks a definition against the language's JSON schemas; fills in the schemas' defaults in what it is given. */
  export default function aslValidator(definition: object): {
    isValid: boolean
    errorsText: (separator?: string) => string
  }
}
