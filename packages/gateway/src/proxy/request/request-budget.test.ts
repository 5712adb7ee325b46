import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { expect, it } from 'vitest'
import { ask, backend, forwardTo, irOf, route, start } from '../../../testing/proxy-fixture.ts'
import { RequestBudget } from './request-budget.ts'

const KIB = 1_024

it('counts requests and octets of all clients and of each address, until they are released', () => {
  const limits = { maxRequests: 3, maxHeaderBytes: 100, maxRequestsOfAddress: 2, maxHeaderBytesOfAddress: 60 }
  const budget = new RequestBudget(limits)
  const first = budget.take('192.0.2.1', 50)
  expect(budget.take('192.0.2.1', 11)).toBeUndefined()
  expect(budget.take('::ffff:192.0.2.1', 10)).toBeDefined()
  expect(budget.take('192.0.2.1', 0)).toBeUndefined()
  expect(budget.take('2001:db8::1', 41)).toBeUndefined()
  expect(budget.take('2001:db8::1', 40)).toBeDefined()
  expect(budget.take('192.0.2.2', 0)).toBeUndefined()
  first?.()
  expect(budget.take('192.0.2.1', 50)).toBeDefined()
})

it('requests beyond it are answered with 503, and what ends makes room, over HTTP/1 and HTTP/2', async () => {
  const held: (() => void)[] = []
  const at = await backend(({ url }, respond) => (url === '/' ? respond(200) : held.push(() => respond(200))))
  const requestLimits = {
    maxRequests: 100,
    maxHeaderBytes: 100 * KIB,
    maxRequestsOfAddress: 100,
    maxHeaderBytesOfAddress: 32 * KIB,
  }
  const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [at] }, { requestLimits })
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  const padding = 'x'.repeat(7 * KIB)
  for (let count = 0; count < 2; count++)
    session.request({ ':path': '/held', ':authority': 'x.test', padding }).on('error', () => undefined)
  const text = `GET /held HTTP/1.1\r\nhost: x.test\r\npadding: ${padding}\r\n\r\n`
  const socket = connect(port, '127.0.0.1', () => socket.write(text.repeat(2)))
  await expect.poll(() => held.length).toBe(4)
  const refused = await ask(port, '/', { headers: { padding } })
  expect([refused.status, refused.body, refused.headers.connection]).toEqual([
    503,
    'too many requests in flight',
    'close',
  ])
  expect((await ask(port)).status).toBe(200)
  socket.destroy()
  await expect.poll(async () => (await ask(port, '/', { headers: { padding } })).status).toBe(200)
  session.destroy()
  for (const answer of held) answer()
})
