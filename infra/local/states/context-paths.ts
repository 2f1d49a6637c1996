/** The field of the interpreter's context object in which the execution's own stands. */
export const ownContext = 'Context'

/**
 * A state whose paths into the context object (`$$`) lead into the execution's own. The interpreter's own says of the
 * execution what is true of one run of the interpreter, and an execution that waited takes more than one.
 */
export function readingOwnContext(state: object): object {
  return mapFields(state, (name, value) => {
    if (templates.has(name)) return inTemplate(value)
    if (rules.has(name)) return inRules(value)
    return name === 'Variable' || name.endsWith('Path') ? moved(value) : value
  })
}

const templates = new Set(['Parameters', 'ResultSelector'])
const rules = new Set(['Choices', 'And', 'Or', 'Not'])

function inRules(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inRules)
  return isObject(value) ? readingOwnContext(value) : value
}

function inTemplate(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inTemplate)
  if (!isObject(value)) return value
  return mapFields(value, (name, inner) => (name.endsWith('.$') ? moved(inner) : inTemplate(inner)))
}

function mapFields(fields: object, change: (name: string, value: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, change(name, value)]))
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

// An intrinsic function's texts are in quotes, and `$$` in them is text.
const moved = (path: unknown): unknown =>
  typeof path === 'string'
    ? path.replaceAll(/'(?:[^'\\]|\\.)*'|\$\$/g, (part) => (part === '$$' ? `$$.${ownContext}` : part))
    : path
