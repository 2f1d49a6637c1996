import { describe, expect, it } from 'vitest'
import { hasControl, hasHidden, oneLine, visible } from '../../../lib/text/visible.ts'

describe('what a person would not see', () => {
  it.each([
    ['a\0b', 'a<U+0000>b'],
    ['\u001b[31mred', '<U+001B>[31mred'],
    ['\u0085\u009b', '<U+0085><U+009B>'],
    ['access \u202eresu\u202c', 'access <U+202E>resu<U+202C>'],
    ['\u2066a\u2069\u200e\u200f\u061c', '<U+2066>a<U+2069><U+200E><U+200F><U+061C>'],
    ['ad\u200bmin\ufeff\u2060\u00ad', 'ad<U+200B>min<U+FEFF><U+2060><U+00AD>'],
    ['\u{e0041}\u{e007f}', '<U+E0041><U+E007F>'],
    ['half \ud83d', 'half \ufffd'],
  ])('%j is written out', (text, expected) => {
    expect(visible(text)).toBe(expected)
    expect(oneLine(text.replaceAll('\u0085', ''))).toBe(expected.replaceAll('<U+0085>', ''))
  })

  it.each(['one\n\ttwo', 'שלום', 'می\u200cخواهم', '👨\u200d👩\u200d👧', '❤\ufe0f', 'naïve €'])(
    '%j is no such thing',
    (text) => {
      expect(visible(text)).toBe(text)
      expect(hasControl(text)).toBe(false)
    },
  )

  it('on one line nothing jumps', () => {
    expect(oneLine('a\r\nb\tc\u2028d\ve')).toBe('a  b c d e')
    expect(hasHidden('a\nb')).toBe(true)
    expect(hasControl('a\r\n\tb')).toBe(false)
    expect(hasControl('a\u007fb')).toBe(true)
  })
})
