import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyJsonPatch } from './json-patch.ts'
import { PatchError } from './patch-error.ts'

const document = { a: 1, list: [1, 2, 3], deep: { 'x/y': { '~': 1 } } }

function messageOf(patch: unknown): string {
  try {
    applyJsonPatch(document, patch)
  } catch (error) {
    if (error instanceof PatchError) return `${error.status} ${error.message}`
    throw error
  }
  return 'applied'
}

describe('JSON patch', () => {
  it.each<[string, unknown[], unknown]>([
    ['adds a key', [{ op: 'add', path: '/b', value: 2 }], { ...document, b: 2 }],
    ['inserts into a list', [{ op: 'add', path: '/list/1', value: 9 }], { ...document, list: [1, 9, 2, 3] }],
    ['appends', [{ op: 'add', path: '/list/-', value: 9 }], { ...document, list: [1, 2, 3, 9] }],
    ['removes by a negative index', [{ op: 'remove', path: '/list/-1' }], { ...document, list: [1, 2] }],
    ['replaces a missing key', [{ op: 'replace', path: '/b', value: 2 }], { ...document, b: 2 }],
    [
      'reads escaped parts',
      [{ op: 'replace', path: '/deep/x~1y/~0', value: 2 }],
      { ...document, deep: { 'x/y': { '~': 2 } } },
    ],
    ['moves', [{ op: 'move', from: '/a', path: '/list/0' }], { list: [1, 1, 2, 3], deep: document.deep }],
    ['copies', [{ op: 'copy', from: '/list', path: '/b' }], { ...document, b: [1, 2, 3] }],
    ['tests deeply', [{ op: 'test', path: '/deep', value: { 'x/y': { '~': 1 } } }], document],
    ['replaces the document', [{ op: 'replace', path: '', value: { z: 1 } }], { z: 1 }],
  ])('%s', (_, patch, expected) => {
    expect(applyJsonPatch(document, patch)).toEqual(expected)
  })

  it.each<[unknown, string]>([
    [
      [{ op: 'remove', path: '/z' }],
      "422 error in remove for path: '/z': Unable to remove nonexistent key: z: missing value",
    ],
    [[{ op: 'test', path: '/a', value: 2 }], '422 testing value /a failed: test failed'],
    [
      [{ op: 'add', path: '/x/y', value: 2 }],
      '422 add operation does not apply: doc is missing path: "/x/y": missing value',
    ],
    [[{ op: 'nope', path: '/a' }], '422 Unexpected kind: nope'],
    [{}, '400 error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp'],
    [
      Array.from({ length: 10_001 }, () => ({})),
      '413 The allowed maximum operations in a JSON patch is 10000, got 10001',
    ],
  ])('%j is rejected', (patch, message) => {
    expect(messageOf(patch)).toBe(message)
  })

  it('rejects copies that exceed the limit, before they are made', () => {
    const bomb = Array.from({ length: 40 }, (_, index) => ({ op: 'copy', from: '/list', path: `/list/${index}` }))
    expect(messageOf(bomb)).toMatch(/^422 Unable to complete the copy, the accumulated size increase of copy is \d+/)
    const names = Array.from({ length: 40 }, (_, index) => ({ op: 'copy', from: '/deep', path: `/deep/${index}` }))
    expect(messageOf(names)).toMatch(/^422 Unable to complete the copy/)
  })

  it('rejects values nested by moves deeper than the stack', () => {
    const into = '/n'.repeat(900)
    const chain = JSON.parse(`${'{"n":'.repeat(900)}{}${'}'.repeat(900)}`) as unknown
    const patch = Array.from({ length: 200 }, () => [
      { op: 'add', path: '/next', value: chain },
      { op: 'add', path: '/a', value: 1 },
      { op: 'move', from: '/n', path: `/next${into}/n` },
      { op: 'move', from: '/next', path: '/n' },
    ]).flat()
    const root = { n: {} }
    const last = { op: 'test', path: '/n', value: {} }
    const deep = applyJsonPatch(root, patch)
    expect(() => applyJsonPatch(deep, [{ op: 'copy', from: '/n', path: '/copy' }, last])).toThrow(PatchError)
  })

  it('copies containers by value', () => {
    const patch = [
      { op: 'copy', from: '/list', path: '/twin' },
      { op: 'add', path: '/list/-', value: 4 },
      { op: 'add', path: '/twin/-', value: 5 },
    ]
    expect(applyJsonPatch(document, patch)).toEqual({ ...document, list: [1, 2, 3, 4], twin: [1, 2, 3, 5] })
  })

  it('cannot reach a prototype', () => {
    const result = applyJsonPatch({}, [{ op: 'add', path: '/__proto__', value: { polluted: true } }]) as object
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype)
    expect(JSON.stringify(result)).toBe('{"__proto__":{"polluted":true}}')
    expect(messageOf([{ op: 'add', path: '/constructor/prototype/x', value: 1 }])).toMatch(/^422/)
  })

  it('never changes the document, and never throws anything but PatchError', () => {
    const part = fc.constantFrom('a', 'list', 'deep', '0', '1', '-', '-1', 'x~1y', '__proto__', '')
    const path = fc.array(part, { maxLength: 3 }).map((parts) => parts.map((one) => `/${one}`).join(''))
    const operation = fc.record({
      op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test'),
      path,
      from: path,
      value: fc.jsonValue({ maxDepth: 1 }),
    })
    const before = JSON.stringify(document)
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 4 }), (patch) => {
        messageOf(patch)
        expect(JSON.stringify(document)).toBe(before)
      }),
      { numRuns: 1_000 },
    )
  })
})
