import { connect, type ClientHttp2Session, type Settings } from 'node:http2'
import { expect, it, onTestFinished } from 'vitest'
import { backend, CLOSED, forwardTo, irOf, openSocket, raw, route, start } from '../../../testing/proxy-fixture.ts'
import { ReplayBudget } from './replay-budget.ts'

const LIMITS = { maxBytes: 100, maxBytesOfConnection: 40 }
const retry = { retry: { count: 1, on: ['5xx'], statusCodes: [] } } as const
const post = (octets: number) =>
  `POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: ${octets}\r\nconnection: close\r\n\r\n`

it('is shared by connections, and by the requests of one', () => {
  const budget = new ReplayBudget(LIMITS)
  const [one, two, three] = [{}, {}, {}]
  const [first, second] = [budget.open(one), budget.open(one)]
  expect([first.take(30), second.take(11), second.take(10)]).toEqual([true, false, true])
  expect([budget.open(two).take(40), budget.open(three).take(21), budget.open(three).take(20)]).toEqual([
    true,
    false,
    true,
  ])
  first.release()
  expect([budget.bytes, second.take(30)]).toEqual([70, true])
})

it('is freed when all that hold a body have ended', () => {
  const budget = new ReplayBudget(LIMITS)
  const share = budget.open({})
  share.take(40)
  share.hold()
  share.release()
  expect(budget.bytes).toBe(40)
  share.release()
  expect(budget.bytes).toBe(0)
})

it('without room a body is streamed and its request not sent again; with room it is', async () => {
  let calls = 0
  const one = await backend((_request, respond) => {
    calls++
    respond(503)
  })
  const { port } = await start(
    irOf([route(forwardTo(['one'], retry))]),
    { one: [one] },
    { replayLimits: { maxBytes: 50, maxBytesOfConnection: 40 } },
  )
  const attempts = async (octets: number) => {
    const before = calls
    await raw(port, `${post(octets)}${'x'.repeat(octets)}`)
    return calls - before
  }
  expect([await attempts(40), await attempts(41)]).toEqual([2, 1])
  expect(one.seen.at(-1)?.body).toBe('x'.repeat(41))
  // Of clients that do not complete their bodies, and then leave.
  const silent = [openSocket(port), openSocket(port)]
  for (const { socket } of silent) socket.write(`${post(100)}${'x'.repeat(25)}`)
  await expect.poll(async () => attempts(10)).toBe(1)
  for (const { socket } of silent) socket.destroy()
  await expect.poll(async () => attempts(40)).toBe(2)
})

it('is freed when a mirror does not answer', async () => {
  const [one, silent] = [await backend(), await backend(() => undefined)]
  const { port } = await start(
    irOf(
      [route(forwardTo(['one'], { mirrors: [{ cluster: 'silent', percent: 100 }], timeoutMs: 200 }))],
      [{ name: 'one' }, { name: 'silent' }],
    ),
    { one: [one], silent: [silent] },
    { replayLimits: { maxBytes: 10, maxBytesOfConnection: 10 } },
  )
  const copies = async () => {
    const before = silent.begun()
    await raw(port, `${post(10)}${'x'.repeat(10)}`)
    return silent.begun() - before
  }
  await raw(port, `${post(10)}${'x'.repeat(10)}`)
  await expect.poll(() => silent.begun()).toBe(1)
  expect(await copies()).toBe(0)
  await expect.poll(copies).toBe(1)
})

it('a connection of HTTP/2 has at most 100 requests at a time', async () => {
  const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [CLOSED] })
  const session: ClientHttp2Session = connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  const settings = await new Promise<Settings>((resolve) => session.once('remoteSettings', resolve))
  expect(settings.maxConcurrentStreams).toBe(100)
})
