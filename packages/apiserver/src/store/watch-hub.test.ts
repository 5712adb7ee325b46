import { expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../clock.ts'
import { Faults } from '../faults.ts'
import { createApiServer } from '../index.ts'
import { parseFieldSelector, parseLabelSelector } from '../resource/selectors.ts'
import { Store } from './store.ts'
import { type ChannelRequest, Watcher, WatchHub } from './watch-hub.ts'

const maps = '/api/v1/namespaces/default/configmaps'

it('after a long flush the next one waits as long on the clock of the server', async () => {
  // Change, begin and end of the first flush, which took 50 ms, and the change after it.
  const times = [0, 0, 50, 60]
  const timers: { afterMs: number; task: () => void }[] = []
  const server = createApiServer({
    controllers: false,
    clock: {
      now: () => 0,
      monotonic: () => times.shift() ?? 200,
      schedule(afterMs, task) {
        timers.push({ afterMs, task })
        return { cancel: () => undefined }
      },
    },
  })
  onTestFinished(async () => server.close())
  const response = await server.fetch(`${maps}?watch=1`)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const read = async (): Promise<string> => new TextDecoder().decode((await reader.read()).value)
  const create = async (name: string): Promise<unknown> =>
    server.fetch(maps, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ metadata: { name } }),
    })
  await create('first')
  expect(await read()).toContain('"name":"first"')
  await create('second')
  const pause = timers.find(({ afterMs }) => afterMs === 40)
  expect(pause).toBeDefined()
  pause?.task()
  expect(await read()).toContain('"name":"second"')
})

it('the UIDs of objects derive from the random numbers of the server', async () => {
  const uids: string[] = []
  for (const start of [0.1, 0.1, 0.2]) {
    let last = start
    const server = createApiServer({ controllers: false, random: () => (last = (last * 7.3) % 1) })
    const response = await server.fetch(maps, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ metadata: { name: 'a' } }),
    })
    uids.push(((await response.json()) as { metadata: { uid: string } }).metadata.uid)
    await server.close()
  }
  expect(uids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(uids[1]).toBe(uids[0])
  expect(uids[2]).not.toBe(uids[0])
})

/** A hub with one collection, and watches whose client has received nothing of `bufferedBytes`. */
function hubOf() {
  const store = new Store({ clock: systemClock })
  const faults = new Faults(store, Math.random)
  const hub = new WatchHub(systemClock, faults)
  const collection = store.collection('configmaps')
  let encoded = 0
  const request: ChannelRequest = {
    collection,
    namespace: '',
    labels: parseLabelSelector(''),
    fields: parseFieldSelector('', {}, String),
    shareKey: 'all',
    encode: (_type, stored) => {
      encoded += 1
      return Buffer.from(`${stored.key} `)
    },
  }
  const join = (bufferedBytes = 0) => {
    const calls: string[] = []
    const sink = {
      bufferedBytes,
      write: (chunk: Buffer) => void calls.push(chunk.toString()),
      end: () => void calls.push('end'),
      abort: () => void calls.push('abort'),
    }
    const info = { group: '', resource: 'configmaps', namespace: '', user: 'admin', userAgent: '' }
    const leave = hub.join(new Watcher(info, sink, faults, systemClock, 1000), request)
    return { calls, leave }
  }
  const change = (name: string): void => {
    collection.put(name, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })
  }
  return { hub, join, change, encodedCount: () => encoded }
}

it('a watch whose client does not read is broken above its limit, and others of the same request are not', () => {
  const { hub, join, change } = hubOf()
  const [full, slow, ready] = [join(1001), join(1000), join()]
  change('a')
  hub.flush()
  change('b')
  hub.flush()
  expect([full.calls, slow.calls, ready.calls]).toEqual([['abort'], ['a ', 'b '], ['a ', 'b ']])
})

it('changes are encoded once for all watches of a request, and no longer when the last one has left', () => {
  const { hub, join, change, encodedCount } = hubOf()
  const [first, second] = [join(), join()]
  change('a')
  first.leave()
  second.leave()
  change('b')
  hub.flush()
  expect([encodedCount(), hub.size]).toEqual([1, 0])
  const later = join()
  change('c')
  hub.flush()
  expect([encodedCount(), later.calls]).toEqual([2, ['c ']])
})

it('a watch that joins does not receive the changes before it', () => {
  const { hub, join, change } = hubOf()
  const first = join()
  change('a')
  const second = join()
  change('b')
  hub.flush()
  expect([first.calls.join(''), second.calls.join('')]).toEqual(['a b ', 'b '])
})
