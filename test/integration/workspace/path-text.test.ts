import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readPath, showPath } from '../../../lib/workspace/path-text.ts'

test.each([
  ['src/a b.ts', 'src/a b.ts'],
  ['grün/日本.txt', 'grün/日本.txt'],
  ['say "hi".txt', 'say "hi".txt'],
  ['back\\slash', 'back\\\\slash'],
  ['new\nline', 'new\\x0aline'],
])('%j shows as %j', (path, shown) => {
  expect(showPath(Buffer.from(path))).toBe(shown)
})

test('bytes that are no UTF-8 show as hex, and a folder prefix survives', () => {
  expect(showPath(Buffer.from([0x74, 0x2f, 0xff, 0xc3, 0x28]))).toBe('t/\\xff\\xc3(')
})

test('any bytes come back from their printed form', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      expect(readPath(showPath(bytes))).toEqual(Buffer.from(bytes))
    }),
  )
})

test('any text comes back, and two paths never print the same', () => {
  const bytes = fc.array(fc.constantFrom(0x5c, 0x78, 0x66, 0x30, 0xff, 0xc3, 0xa9, 0x0a), { maxLength: 12 })
  fc.assert(
    fc.property(bytes, bytes, (one, two) => {
      const [a, b] = [Buffer.from(one), Buffer.from(two)]
      expect(showPath(a) === showPath(b)).toBe(a.equals(b))
    }),
  )
})
