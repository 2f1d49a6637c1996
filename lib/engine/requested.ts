import { GatehouseError } from '../errors.ts'

/** An engine as asked for (spec/coder-session.md 2.2); `id` is null when any of its kind will do. */
export type RequestedEngine = { kind: 'auto' | 'native' | 'external' | 'foreman'; id: string | null }

export type EngineCommand = string | readonly string[]

/** What a request came to. The reason is for display only. */
export type ResolvedEngine = { engine: 'external:command'; reason: string }

/** Reads `auto`, `native`, `external[:<id>]` or `foreman[:<id>]`; other text gives a problem. */
export const parseEngine = (text: string): RequestedEngine | { problem: string } => {
  const match = /^(?:(auto|native)|(external|foreman)(?::([a-z0-9][a-z0-9._-]{0,63}))?)$/.exec(text)
  const [, plain, delegated, id = null] = match ?? []
  if (plain === 'auto' || plain === 'native') return { kind: plain, id: null }
  if (delegated === 'external' || delegated === 'foreman') return { kind: delegated, id }
  return { problem: 'has to be auto, native, external, external:<id>, foreman or foreman:<id>' }
}

/**
 * The engine that a request gets: today only `external:command`, which needs its `engine_command`. What was
 * asked for by name is honoured or refused, never replaced. Throws `engine_unavailable`.
 */
export const resolveEngine = (
  requested: string,
  facts: { engine_command: EngineCommand | null },
): ResolvedEngine => {
  const engine = parseEngine(requested)
  if ('problem' in engine)
    throw unavailable(`The engine "${requested}" is unknown: it ${engine.problem}.`, 'engine')
  const anyExternal = engine.kind === 'auto' || (engine.kind === 'external' && engine.id === null)
  if (!anyExternal && !(engine.kind === 'external' && engine.id === 'command')) {
    throw unavailable(`The engine "${requested}" is not available here; external:command is.`, 'engine')
  }
  if (facts.engine_command === null || isEmpty(facts.engine_command)) {
    throw unavailable(
      `The engine "${requested}" needs an engine_command, which is what external:command, the only one here, runs.`,
      'engine_command',
    )
  }
  return {
    engine: 'external:command',
    reason: anyExternal
      ? `${requested}: an engine_command was given, and external:command is the one engine that is available`
      : 'asked for by name',
  }
}

const isEmpty = (command: EngineCommand): boolean =>
  typeof command === 'string' ? command.trim() === '' : (command[0] ?? '').trim() === ''

const unavailable = (detail: string, path: string): GatehouseError =>
  new GatehouseError('engine_unavailable', detail, { errors: [{ path, message: detail }] })
