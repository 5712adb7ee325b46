import { describe, expect, it } from 'vitest'
import { type Durability, DurableSink } from './durability.ts'

/** A sink whose calls are recorded, on a disk whose writes complete or fail on request. */
function setUp() {
  const calls: string[] = []
  const writes: { complete: () => void; fail: () => void }[] = []
  let pending: Promise<void> | undefined
  const durability: Durability = { append: () => undefined, pending: () => pending }
  const sink = new DurableSink(
    {
      bufferedBytes: 10,
      write: (chunk) => void calls.push(chunk.toString()),
      end: () => void calls.push('end'),
      abort: () => void calls.push('abort'),
    },
    durability,
  )
  const beginWrite = (): void => {
    pending = new Promise<void>((resolve, reject) => {
      writes.push({ complete: resolve, fail: () => reject(new Error('disk full')) })
    })
    pending.catch(() => undefined)
  }
  const settle = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve))
  const isDurable = (): void => void (pending = undefined)
  return { calls, writes, sink, beginWrite, settle, isDurable }
}

describe('a stream of a durable store', () => {
  it('sends at once what is on disk', () => {
    const { calls, sink } = setUp()
    sink.write(Buffer.from('a'))
    sink.end()
    expect([calls, sink.bufferedBytes]).toEqual([['a', 'end'], 10])
  })

  it('keeps the order of chunks and of the end, whichever write to disk completes first', async () => {
    const { calls, writes, sink, beginWrite, settle, isDurable } = setUp()
    beginWrite()
    sink.write(Buffer.from('first'))
    beginWrite()
    sink.write(Buffer.from('second'))
    isDurable()
    sink.write(Buffer.from('third'))
    sink.end()
    writes[1]?.complete()
    await settle()
    expect(calls).toEqual([])
    writes[0]?.complete()
    await settle()
    expect(calls).toEqual(['first', 'second', 'third', 'end'])
  })

  it('counts the bytes that wait for the disk, so that the limit of a watch includes them', async () => {
    const { writes, sink, beginWrite, settle } = setUp()
    beginWrite()
    sink.write(Buffer.from('12345'))
    expect(sink.bufferedBytes).toBe(15)
    writes[0]?.complete()
    await settle()
    expect(sink.bufferedBytes).toBe(10)
  })

  it('breaks when the disk fails, without what may be lost', async () => {
    const { calls, writes, sink, beginWrite, settle } = setUp()
    beginWrite()
    sink.write(Buffer.from('lost'))
    writes[0]?.fail()
    await settle()
    expect(calls).toEqual(['abort'])
  })
})
