import { expect, it, onTestFinished } from 'vitest'
import { createApiServer } from '../index.ts'

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
