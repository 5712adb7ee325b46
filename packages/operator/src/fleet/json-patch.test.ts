import { describe, expect, it } from 'vitest'
import { applyPatch, type PatchOperation } from './json-patch.ts'

const document = { spec: { list: ['a', 'b'], 'x/y': 1 } }
const run = (...patch: PatchOperation[]) => applyPatch<unknown>(document, patch)

describe('a JSON patch', () => {
  it('adds, removes, replaces, moves, copies and tests without changing its input', () => {
    expect(run({ op: 'add', path: '/spec/list/1', value: 'n' })).toMatchObject({
      value: { spec: { list: ['a', 'n', 'b'] } },
    })
    expect(run({ op: 'add', path: '/spec/list/-', value: 'z' })).toMatchObject({
      value: { spec: { list: ['a', 'b', 'z'] } },
    })
    expect(run({ op: 'remove', path: '/spec/list/0' })).toMatchObject({ value: { spec: { list: ['b'] } } })
    expect(run({ op: 'replace', path: '/spec/x~1y', value: 2 })).toMatchObject({ value: { spec: { 'x/y': 2 } } })
    expect(run({ op: 'move', from: '/spec/x~1y', path: '/spec/n' })).toEqual({
      value: { spec: { list: ['a', 'b'], n: 1 } },
    })
    expect(run({ op: 'copy', from: '/spec/list', path: '/spec/n' })).toMatchObject({
      value: { spec: { n: ['a', 'b'] } },
    })
    expect(run({ op: 'test', path: '/spec/x~1y', value: 1 })).toEqual({ value: document })
    expect(document).toEqual({ spec: { list: ['a', 'b'], 'x/y': 1 } })
  })

  it('fails as a whole and says where', () => {
    const ok: PatchOperation = { op: 'add', path: '/spec/n', value: 1 }
    expect(run(ok, { op: 'remove', path: '/spec/none' })).toEqual({ index: 1, message: '/spec/none does not exist' })
    expect(run({ op: 'test', path: '/spec/x~1y', value: 3 })).toMatchObject({ index: 0 })
    expect(run({ op: 'add', path: '/spec/list/7', value: 3 })).toMatchObject({ index: 0 })
    expect(run({ op: 'add', path: '/__proto__/x', value: 3 })).toMatchObject({ index: 0 })
    expect(run({ op: 'add', path: 'spec', value: 3 })).toMatchObject({ index: 0 })
  })

  it('copies at most 64 KiB, whatever the number of copies', () => {
    const doubling = Array.from({ length: 40 }, (_, index): PatchOperation => ({
      op: 'copy',
      from: '',
      path: `/x${index}`,
    }))
    expect(run(...doubling)).toEqual({
      index: expect.any(Number),
      message: 'the copies of the patch have more than 65536 octets',
    })
    const value = 'v'.repeat(60_000)
    const fits: PatchOperation[] = [
      { op: 'add', path: '/big', value },
      { op: 'copy', from: '/big', path: '/same' },
    ]
    expect(run(...fits)).toMatchObject({ value: { same: value } })
    expect(run(...fits, { op: 'copy', from: '/big', path: '/third' })).toMatchObject({ index: 2 })
  })

  it('refuses a value that is nested too deeply', () => {
    const deep: unknown = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`)
    expect(run({ op: 'add', path: '/x', value: deep })).toEqual({
      index: 0,
      message: 'the value for /x has more than 100 levels',
    })
    const nesting = Array.from({ length: 3_000 }, (): PatchOperation => ({ op: 'move', from: '/spec', path: '/spec' }))
    expect(run(...nesting)).toMatchObject({ value: document })
  })
})
