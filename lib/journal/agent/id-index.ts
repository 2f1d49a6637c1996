import type { IdPrefix } from '../../ids.ts'
import { countUpTo } from './series.ts'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const digitOf = new Uint8Array(128)
for (const [value, character] of [...alphabet].entries()) digitOf[character.charCodeAt(0)] = value

/** An id's suffix has 26 characters of five bits: four words of five of them, and one of six. */
const words = 5
const suffix = 26

const read = (id: string, start: number, end: number): number => {
  let word = 0
  for (let at = start; at < end; at++) word = (word << 5) | (digitOf[id.charCodeAt(at)] ?? 0)
  return word
}

const write = (word: number, characters: number): string => {
  let text = ''
  for (let shift = (characters - 1) * 5; shift >= 0; shift -= 5) text += alphabet[(word >> shift) & 31]
  return text
}

/** Differs from process to process, so that nobody can choose ids that all fall on one slot. */
const seed = Math.trunc(Math.random() * 0x7fff_ffff)

/** A copy with room for twice as much. */
const grown = <Numbers extends Uint32Array | Float64Array>(from: Numbers, into: Numbers): Numbers => {
  into.set(from)
  return into
}

/**
 * The ids of one kind that a session used, each once, with the sequence at which it came. It only grows. A session has as
 * many as records, so they are kept as the numbers that a TypeID's suffix writes down, in a third of the room of text.
 * Takes ids that the schemas have accepted.
 */
export class IdIndex {
  readonly #prefix: IdPrefix
  #words = new Uint32Array(16 * words)
  #sequences = new Float64Array(16)
  #count = 0
  /** Open addressing: where an id stands, counted from 1; 0 is a free slot. */
  #slots = new Uint32Array(32)
  readonly #wanted = new Uint32Array(words)

  constructor(prefix: IdPrefix) {
    this.#prefix = prefix
  }

  /** Adds an id that is not there yet. */
  add(id: string, sequence: number): void {
    if (this.#count === this.#sequences.length) this.#grow()
    this.#slots[this.#find(id)] = this.#count + 1
    this.#words.set(this.#wanted, this.#count * words)
    this.#sequences[this.#count] = sequence
    this.#count += 1
  }

  /** The sequence at which an id came; undefined for one that did not. */
  get(id: string): number | undefined {
    const place = this.#slots[this.#find(id)]
    return place ? this.#sequences[place - 1] : undefined
  }

  /** The last id that came at or before a sequence, where they were added in order. */
  at(sequence: number): string | undefined {
    const place = countUpTo(this.#sequences, sequence, this.#count) - 1
    return place < 0 ? undefined : this.#id(place)
  }

  /** The ids that came up to a sequence, where they were added in order. */
  *upTo(sequence: number): Generator<[sequence: number, id: string]> {
    const end = countUpTo(this.#sequences, sequence, this.#count)
    for (let place = 0; place < end; place++) yield [this.#sequences[place] ?? 0, this.#id(place)]
  }

  #id(place: number): string {
    const [a = 0, b = 0, c = 0, d = 0, e = 0] = this.#words.subarray(place * words, (place + 1) * words)
    return `${this.#prefix}_${write(a, 5)}${write(b, 5)}${write(c, 5)}${write(d, 5)}${write(e, 6)}`
  }

  /** The slot of an id, or the free one that it belongs to. */
  #find(id: string): number {
    const wanted = this.#wanted
    const start = id.length - suffix
    for (let word = 0; word < words; word++)
      wanted[word] = read(id, start + word * 5, word === words - 1 ? id.length : start + (word + 1) * 5)
    let slot = this.#slotOf(wanted, 0)
    for (;;) {
      const place = this.#slots[slot] ?? 0
      if (place === 0 || this.#isAt(place - 1)) return slot
      slot = (slot + 1) & (this.#slots.length - 1)
    }
  }

  #isAt(place: number): boolean {
    for (let word = 0; word < words; word++)
      if (this.#words[place * words + word] !== this.#wanted[word]) return false
    return true
  }

  /** Where the search for an id begins. */
  #slotOf(from: Uint32Array, start: number): number {
    let mixed = seed
    for (let word = 0; word < words; word++) {
      mixed = Math.imul(mixed ^ (from[start + word] ?? 0), 0x9e37_79b1)
      mixed ^= mixed >>> 15
    }
    return mixed & (this.#slots.length - 1)
  }

  #grow(): void {
    this.#words = grown(this.#words, new Uint32Array(this.#words.length * 2))
    this.#sequences = grown(this.#sequences, new Float64Array(this.#sequences.length * 2))
    this.#slots = new Uint32Array(this.#slots.length * 2)
    for (let place = 0; place < this.#count; place++) {
      let slot = this.#slotOf(this.#words, place * words)
      while (this.#slots[slot] !== 0) slot = (slot + 1) & (this.#slots.length - 1)
      this.#slots[slot] = place + 1
    }
  }
}
