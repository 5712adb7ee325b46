import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../ir/endpoint.ts'
import {
  ask,
  backend,
  CLOSED,
  forwardTo,
  irOf,
  manualClock,
  openSocket,
  route,
  start,
} from '../../../testing/proxy-fixture.ts'

describe('the proxy with a backend or a client that does not answer', () => {
  it('answers 504 when the backend takes longer than the timeout', async () => {
    const one = await backend(() => undefined)
    const clock = manualClock()
    const { port } = await start(irOf([route(forwardTo(['one'], { timeoutMs: 1_000 }))]), { one: [one] }, { clock })
    const asking = ask(port)
    await expect.poll(() => one.seen.length).toBe(1)
    clock.advance(1_000)
    expect(await asking).toMatchObject({ status: 504, body: 'upstream request timeout' })
  })

  it('answers 503 when the port is closed, and does not fail later requests', async () => {
    const one = await backend()
    const endpoints: Record<string, Endpoint[]> = { one: [CLOSED] }
    const { port } = await start(irOf([route(forwardTo(['one']))]), endpoints)
    expect((await ask(port)).status).toBe(503)
    endpoints['one'] = [one]
    expect((await ask(port)).status).toBe(200)
  })

  it('does not take its own standstill for a backend that cannot be connected to', async () => {
    const one = await backend()
    const stall = () => {
      const until = performance.now() + 60
      while (performance.now() < until);
    }
    const random = () => {
      // After the connection was begun, before its event is read.
      setImmediate(stall)
      return 0
    }
    const cluster = { name: 'one', connectTimeoutMs: 20 }
    const { port } = await start(irOf([route(forwardTo(['one']))], [cluster]), { one: [one] }, { random })
    expect((await ask(port)).status).toBe(200)
  })

  it('counts the timeout of a response from the end of the request', async () => {
    const clock = manualClock()
    const one = await backend((request, respond) => respond(200, {}, request.text))
    const { port } = await start(irOf([route(forwardTo(['one'], { timeoutMs: 100 }))]), { one: [one] }, { clock })
    const { socket, text } = openSocket(port)
    socket.write('POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 4\r\nconnection: close\r\n\r\nab')
    await expect.poll(() => one.begun()).toBe(1)
    clock.advance(1_000)
    socket.write('cd')
    await expect.poll(text).toMatch(/^HTTP\/1\.1 200 .*abcd/s)
  })

  it.each([
    ['streamed', {}],
    ['kept for a retry', { retry: { count: 1, on: ['5xx'], statusCodes: [] } }],
  ])('answers 408 to a client that stops in the middle of a body that is %s', async (_name, policy) => {
    const clock = manualClock()
    const one = await backend()
    const action = forwardTo(['one'], { idleTimeoutMs: 100, ...policy })
    const { port } = await start(irOf([route(action)]), { one: [one] }, { clock })
    const { socket, text } = openSocket(port)
    const closed = once(socket, 'close')
    const head = 'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 4\r\n\r\n'
    socket.write(`${head}ab`)
    await expect.poll(() => clock.pending()).toBeGreaterThan(0)
    // Octets that arrived since the last look count.
    clock.advance(100)
    clock.advance(100)
    await closed
    expect(text()).toMatch(/^HTTP\/1\.1 408 /)
    expect(one.seen).toEqual([])
    await expect.poll(() => one.aborted()).toBe(one.begun())
  })

  it('ends the request to the backend when the client goes away', async () => {
    let isAborted = false
    const one = await backend((request) => {
      request.socket.on('close', () => (isAborted = true))
    })
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const call = httpRequest({ host: '127.0.0.1', port, headers: { host: 'x.test' }, agent: false })
    call.on('error', () => undefined)
    call.end()
    await expect.poll(() => one.seen.length).toBe(1)
    call.destroy()
    await expect.poll(() => isAborted).toBe(true)
  })
})
