import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { Rest } from '../client/rest.ts'
import { ConfigMap } from '../object/kinds.ts'
import { createHttpSource } from './http-source.ts'

const limits = { maxObjects: 2, maxObjectBytes: 1_000, maxBytes: 10_000 }
const signal = new AbortController().signal

const configMap = (name: string) => ({ metadata: { name, namespace: 'ns', resourceVersion: '1' } })
const listOf = (...names: string[]) =>
  JSON.stringify({ metadata: { resourceVersion: '5' }, items: names.map((name) => configMap(name)) })
const eventsOf = (...names: string[]) =>
  names.map((name) => `${JSON.stringify({ type: 'ADDED', object: configMap(name) })}\n`)

/** A source whose requests are answered with the texts in order, and the number of closed streams. */
function sourceOf(...answers: (readonly string[])[]) {
  const counts = { closed: 0 }
  const next = () => (answers.shift() ?? []).map((chunk) => Buffer.from(chunk))
  const rest = {
    call: async () => ({ status: 200, headers: {}, body: Buffer.concat(next()) }),
    stream: async () => ({ status: 200, headers: {}, body: Readable.from(next()), cancel: () => void counts.closed++ }),
  } as unknown as Rest
  return { source: createHttpSource(rest, ConfigMap, { limits }), counts }
}

const page = { continueToken: undefined, limit: 500 }
const nothing = () => undefined

describe('the limits of a source', () => {
  it('begin anew with every list and every initial stream: what they do not contain is no longer cached', async () => {
    const { source } = sourceOf([listOf('a', 'b')], [listOf('c', 'd')], eventsOf('e', 'f'), eventsOf('g', 'h'), [
      listOf('i'),
    ])
    const names: (string | undefined)[] = []
    await source.list(page, ({ object }) => void names.push(object.metadata.name), signal)
    await source.list(page, ({ object }) => void names.push(object.metadata.name), signal)
    for (let round = 0; round < 2; round++) {
      await source.watch(
        { version: undefined, timeoutSeconds: 1 },
        (frame) => void names.push('object' in frame ? frame.object.metadata.name : frame.type),
        nothing,
        signal,
      )
    }
    await source.list(page, ({ object }) => void names.push(object.metadata.name), signal)
    expect(names.join('')).toBe('abcdefghi')
  })

  it('continue with the further pages of a list and with a resumed watch', async () => {
    const { source } = sourceOf([listOf('a', 'b')], [], [listOf('c')])
    await source.list(page, nothing, signal)
    await source.watch({ version: '5', timeoutSeconds: 1 }, nothing, nothing, signal)
    await expect(source.list({ continueToken: 'next', limit: 500 }, nothing, signal)).rejects.toThrow(
      /more than 2 objects/,
    )
  })

  it('end a frame without an end at twice the size of an object', async () => {
    const { source } = sourceOf(['{"type":"ADDED","object":{"data":{"x":"', 'x'.repeat(1_000), 'x'.repeat(1_000)])
    await expect(source.watch({ version: undefined, timeoutSeconds: 1 }, nothing, nothing, signal)).rejects.toThrow(
      'a watch frame is longer than 2000 bytes',
    )
  })
})

it('a watch that ends, and one whose reader fails, closes its stream', async () => {
  const { source, counts } = sourceOf(eventsOf('a'), eventsOf('a'))
  await source.watch({ version: '1', timeoutSeconds: 1 }, nothing, nothing, signal)
  expect(counts.closed).toBe(1)
  const fail = () => {
    throw new Error('reader failed')
  }
  await expect(source.watch({ version: '1', timeoutSeconds: 1 }, fail, nothing, signal)).rejects.toThrow(
    'reader failed',
  )
  expect(counts.closed).toBe(2)
})
