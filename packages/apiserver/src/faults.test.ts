import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ApiServer, createApiServer } from './index.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const secrets = '/api/v1/namespaces/default/secrets'

interface Seen {
  readonly type: string
  readonly object: { metadata: { name: string }; code?: number }
}

/** Reads `count` events of a watch, or fewer when it ends earlier. */
async function readEvents(response: Response, count: number): Promise<string[]> {
  const seen: string[] = []
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const event = JSON.parse(line) as Seen
      seen.push(`${event.type} ${event.object.code ?? event.object.metadata.name}`)
    }
    if (seen.length >= count) break
  }
  return seen
}

describe('faults', () => {
  let server: ApiServer
  const send = async (method: string, path: string, body: object): Promise<Response> =>
    await server.fetch(path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const create = async (name: string): Promise<Response> => await send('POST', maps, { metadata: { name } })
  const watch = async (): Promise<Response> =>
    await server.fetch(`${maps}?watch=1&fieldSelector=metadata.name!=kube-root-ca.crt`)
  const newest = async (): Promise<string> =>
    ((await (await server.fetch(maps)).json()) as { metadata: { resourceVersion: string } }).metadata.resourceVersion
  beforeEach(() => (server = createApiServer({ controllers: false })))
  afterEach(async () => await server.close())

  it('fail responds with the given error the given number of times', async () => {
    server.faults.fail({ verb: 'list', resource: 'configmaps' }, { status: 429, retryAfterSeconds: 7, times: 2 })
    const first = await server.fetch(maps)
    expect(first.status).toBe(429)
    expect(first.headers.get('retry-after')).toBe('7')
    expect(await first.json()).toMatchObject({
      kind: 'Status',
      reason: 'TooManyRequests',
      code: 429,
      details: { retryAfterSeconds: 7 },
    })
    expect((await server.fetch(maps)).status).toBe(429)
    expect((await server.fetch(maps)).status).toBe(200)
  })

  it('fail with afterwards performs the request and drops the response', async () => {
    server.faults.fail({ verb: 'create' }, { afterwards: true, times: 1 })
    await expect(create('a')).rejects.toThrow('fetch failed')
    expect((await server.fetch(`${maps}/a`)).status).toBe(200)
  })

  it('conflict fails a valid update', async () => {
    await create('a')
    server.faults.conflict({ name: 'a' })
    const put = async (): Promise<number> =>
      (await send('PUT', `${maps}/a`, { metadata: { name: 'a' }, data: { k: 'v' } })).status
    expect([await put(), await put()]).toEqual([409, 200])
  })

  it('shorten returns 200 with fewer items', async () => {
    await create('a')
    await create('b')
    const remove = server.faults.shorten({ resource: 'configmaps' }, 1)
    const count = async (): Promise<number> =>
      ((await (await server.fetch(maps)).json()) as { items: unknown[] }).items.length
    expect(await count()).toBe(1)
    remove()
    expect(await count()).toBe(2)
  })

  it('freeze buffers events until it is removed, then delivers them in order', async () => {
    const response = await watch()
    const thaw = server.faults.freeze({ resource: 'configmaps' })
    await create('a')
    await create('b')
    const reading = readEvents(response, 2)
    let isDelivered = false
    void reading.then(() => (isDelivered = true))
    // Events of another resource are delivered meanwhile.
    const other = await server.fetch(`${secrets}?watch=1`)
    await send('POST', secrets, { metadata: { name: 'c' } })
    expect(await readEvents(other, 1)).toEqual(['ADDED c'])
    expect(isDelivered).toBe(false)
    thaw()
    expect(await reading).toEqual(['ADDED a', 'ADDED b'])
  })

  it('drop discards matching events, duplicate repeats them', async () => {
    server.faults.drop({ resource: 'configmaps' }, (event) => event.key === 'default/a')
    server.faults.duplicate({ resource: 'configmaps' }, (event) => event.key === 'default/b')
    const response = await watch()
    await create('a')
    await create('b')
    await create('c')
    expect(await readEvents(response, 3)).toEqual(['ADDED b', 'ADDED b', 'ADDED c'])
  })

  it('reorder delivers the events of a batch in reverse order, and discards none', async () => {
    const fill = async (): Promise<void> => {
      for (const name of ['a', 'b', 'c']) await create(name)
    }
    // One request that causes several events.
    const clear = async (): Promise<void> => void (await server.fetch(maps, { method: 'DELETE' }))
    const deletions = async (): Promise<string[]> => {
      await fill()
      const response = await server.fetch(`${maps}?watch=1&resourceVersion=${await newest()}`)
      await clear()
      return await readEvents(response, 3)
    }
    const restore = server.faults.reorder({ resource: 'configmaps' })
    expect(await deletions()).toEqual(['DELETED c', 'DELETED b', 'DELETED a'])
    restore()
    expect(await deletions()).toEqual(['DELETED a', 'DELETED b', 'DELETED c'])
  })

  it('delay and lag wait for the given time, on the clock of the server', async () => {
    const timers: { afterMs: number; task: () => void }[] = []
    const schedule = (afterMs: number, task: () => void) => {
      timers.push({ afterMs, task })
      return { cancel: () => undefined }
    }
    await server.close()
    server = createApiServer({ controllers: false, clock: { now: () => 0, monotonic: () => 0, schedule } })
    server.faults.delay({ verb: 'get', name: 'a' }, 1234)
    await create('a')
    let isAnswered = false
    const answer = server.fetch(`${maps}/a`).then((response) => {
      isAnswered = true
      return response.status
    })
    await expect.poll(() => timers.some(({ afterMs }) => afterMs === 1234)).toBe(true)
    expect(isAnswered).toBe(false)
    for (const { task } of timers.splice(0).filter(({ afterMs }) => afterMs === 1234)) task()
    expect(await answer).toBe(200)

    server.faults.lag({ resource: 'configmaps' }, 777)
    const reading = server.fetch(`${maps}?watch=1&resourceVersion=${await newest()}`).then(async (response) => {
      await create('late')
      return await readEvents(response, 1)
    })
    await expect.poll(() => timers.some(({ afterMs }) => afterMs === 777)).toBe(true)
    for (const { task } of timers.splice(0).filter(({ afterMs }) => afterMs === 777)) task()
    expect(await reading).toEqual(['ADDED late'])
  })

  it('cut ends watches, or aborts their connections', async () => {
    const [ended, broken] = [await watch(), await watch()]
    expect(server.faults.cut({ resource: 'configmaps' })).toBe(2)
    expect(await readEvents(ended, 1)).toEqual([])
    expect(await readEvents(broken, 1)).toEqual([])
    const third = await watch()
    server.faults.cut({}, 'break')
    await expect(readEvents(third, 1)).rejects.toThrow('terminated')
  })

  it('compact makes old versions 410, on watch, on Exact lists and on continue', async () => {
    await create('a')
    const page = (await (await server.fetch(`${maps}?limit=1`)).json()) as {
      metadata: { resourceVersion: string; continue?: string }
    }
    await create('b')
    const paged = (await (await server.fetch(`${maps}?limit=1`)).json()) as { metadata: { continue: string } }
    await create('c')
    server.faults.compact()
    expect(
      await readEvents(await server.fetch(`${maps}?watch=1&resourceVersion=${page.metadata.resourceVersion}`), 1),
    ).toEqual(['ERROR 410'])
    const exact = await server.fetch(
      `${maps}?resourceVersion=${page.metadata.resourceVersion}&resourceVersionMatch=Exact`,
    )
    expect(exact.status).toBe(410)
    const next = await server.fetch(`${maps}?limit=1&continue=${paged.metadata.continue}`)
    const expired = (await next.json()) as { reason: string; metadata: { continue: string } }
    expect([next.status, expired.reason]).toEqual([410, 'Expired'])
    expect((await server.fetch(`${maps}?limit=1&continue=${expired.metadata.continue}`)).status).toBe(200)
  })

  it('logical clusters are isolated from each other', async () => {
    server.addCluster('east')
    const east = `/clusters/east${maps}`
    expect((await send('POST', east, { metadata: { name: 'only-east' } })).status).toBe(201)
    expect((await server.fetch(`${maps}/only-east`)).status).toBe(404)
    expect((await server.fetch(`${east}/only-east`)).status).toBe(200)
    expect((await server.fetch('/clusters/west/api')).status).toBe(404)
  })
})
