const named = /[.-]([0-9a-f]{64})\.[a-z]+$/

/**
 * The name of an artifact that says what it holds: `<base>.<SHA-256 in hex>.<extension>`. Where the journal names such a
 * one, its bytes are proven by its name.
 */
export const nameOfContent = (base: string, sha256: string, extension: string): string =>
  `${base}.${sha256}.${extension}`

/** The SHA-256 of what an artifact holds, by its name; null for a name that does not say. */
export const digestIn = (name: string): string | null => named.exec(name)?.[1] ?? null
