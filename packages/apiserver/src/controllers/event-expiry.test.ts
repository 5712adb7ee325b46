import { fakeClock } from '@seamark/kube/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ApiServer, createApiServer } from '../index.ts'

const events = '/api/v1/namespaces/default/events'
const minutes = 60_000

describe('an Event', () => {
  const clock = fakeClock()
  let server: ApiServer
  const send = async (method: string, path: string, type: string, body: object): Promise<number> =>
    (await server.fetch(path, { method, headers: { 'content-type': type }, body: JSON.stringify(body) })).status
  const names = async (): Promise<string[]> => {
    const list = (await (await server.fetch(events)).json()) as { items: { metadata: { name: string } }[] }
    return list.items.map(({ metadata }) => metadata.name)
  }
  const create = async (name: string): Promise<void> => {
    const involvedObject = { kind: 'Pod', namespace: 'default', name: 'web' }
    expect(await send('POST', events, 'application/json', { metadata: { name }, involvedObject })).toBe(201)
  }
  beforeEach(() => {
    const schedule = (delayMs: number, task: () => void) => ({ cancel: clock.after(delayMs, task) })
    server = createApiServer({
      controllers: false,
      clock: { now: () => clock.now(), monotonic: () => clock.monotonic(), schedule },
    })
  })
  afterEach(async () => await server.close())

  it('is deleted an hour after it was written, and watches receive the deletion', async () => {
    await create('first')
    await clock.advance(30 * minutes)
    await create('second')
    const watch = await server.fetch(`${events}?watch=1&resourceVersion=0`)
    await clock.advance(30 * minutes - 1)
    expect(await names()).toEqual(['first', 'second'])
    await clock.advance(1)
    expect(await names()).toEqual(['second'])
    const reader = (watch.body as ReadableStream<Uint8Array>).getReader()
    let seen = ''
    while (!seen.includes('DELETED')) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`the watch ended without a deletion: ${seen}`)
      seen += new TextDecoder().decode(value)
    }
    await reader.cancel()
    expect(seen.split('\n').find((line) => line.includes('DELETED'))).toContain('"name":"first"')
    await clock.advance(30 * minutes)
    expect(await names()).toEqual([])
  })

  it('expires an hour after its last change', async () => {
    await create('counted')
    await clock.advance(40 * minutes)
    expect(await send('PATCH', `${events}/counted`, 'application/merge-patch+json', { count: 2 })).toBe(200)
    await clock.advance(40 * minutes)
    expect(await names()).toEqual(['counted'])
    await clock.advance(20 * minutes)
    expect(await names()).toEqual([])
  })
})
