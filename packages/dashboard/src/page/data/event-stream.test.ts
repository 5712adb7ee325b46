import { describe, expect, it } from 'vitest'
import { readEvents, type StreamEvent } from './event-stream.ts'

async function eventsOf(chunks: readonly (string | Uint8Array<ArrayBuffer>)[]): Promise<StreamEvent[]> {
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const chunk of chunks)
        controller.enqueue(typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk)
      controller.close()
    },
  })
  const events: StreamEvent[] = []
  for await (const event of readEvents(body)) events.push(event)
  return events
}

describe('server-sent events of a body', () => {
  it('are read with name, id and data', async () => {
    expect(
      await eventsOf(['event: snapshot\nid: a.1\ndata: {"x":1}\n\n: comment\n\nevent: beat\ndata: {}\n\n']),
    ).toEqual([
      { event: 'snapshot', id: 'a.1', data: '{"x":1}' },
      { event: 'beat', id: undefined, data: '{}' },
    ])
  })

  it('are the same however they are cut', async () => {
    const bytes = new TextEncoder().encode(
      'event: snapshot\r\nid: ä\r\ndata: one: ä\r\ndata: two\r\n\r\nevent: beat\ndata:{}\n\n',
    )
    const whole = await eventsOf([bytes])
    expect(whole).toEqual([
      { event: 'snapshot', id: 'ä', data: 'one: ä\ntwo' },
      { event: 'beat', id: undefined, data: '{}' },
    ])
    for (const size of [1, 2, 3, 7]) {
      const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.slice(at * size, (at + 1) * size),
      )
      expect(await eventsOf(parts)).toEqual(whole)
    }
  })

  it('do not include one that has no end', async () => {
    expect(await eventsOf(['event: snapshot\ndata: {"x":'])).toEqual([])
  })
})
