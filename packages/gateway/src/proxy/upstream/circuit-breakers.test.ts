import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../ir/endpoint.ts'
import { ask, backend, forwardTo, irOf, route, start } from '../../../testing/proxy-fixture.ts'

describe('circuit breakers', () => {
  /** A backend that answers when the test releases it. */
  async function heldBackend() {
    const held: (() => void)[] = []
    const at = await backend((_request, respond) => held.push(() => respond(200)))
    return { at, held }
  }
  const until = async (isDone: () => boolean) => {
    await expect.poll(isDone, { interval: 1 }).toBe(true)
  }

  it('maxConnections lets requests wait, and maxPendingRequests refuses those beyond', async () => {
    const { at, held } = await heldBackend()
    const breakers = { name: 'one', circuitBreakers: { maxConnections: 1, maxPendingRequests: 1 } }
    const { port } = await start(irOf([route(forwardTo(['one']))], [breakers]), { one: [at] })
    const first = ask(port)
    await until(() => held.length === 1)
    const results = [ask(port), ask(port)]
    // Whichever arrives second is refused at once; the other one waits for the connection.
    const refused = await Promise.race(results)
    expect(refused.status).toBe(503)
    expect(held).toHaveLength(1)
    held[0]?.()
    expect((await first).status).toBe(200)
    await until(() => held.length === 2)
    held[1]?.()
    expect(new Set((await Promise.all(results)).map(({ status }) => status))).toEqual(new Set([200, 503]))
  })

  it('a client that went away while it waited does not keep the next one waiting', async () => {
    const { at, held } = await heldBackend()
    const { port } = await start(
      irOf([route(forwardTo(['one']))], [{ name: 'one', circuitBreakers: { maxConnections: 1 } }]),
      {
        one: [at],
      },
    )
    const first = ask(port)
    await until(() => held.length === 1)
    const gone = connect(port, '127.0.0.1', () => gone.write('GET / HTTP/1.1\r\nhost: x.test\r\n\r\n'))
    await new Promise<void>((resolve) => gone.once('connect', resolve))
    const last = ask(port)
    gone.destroy()
    held[0]?.()
    expect((await first).status).toBe(200)
    // The request of the client that went away may have been sent before it was noticed.
    const answering = setInterval(() => held.splice(1).forEach((answer) => answer()), 5)
    expect((await last).status).toBe(200)
    clearInterval(answering)
  })

  it('requests that a client sent ahead, and went away, do not count any longer', async () => {
    const { at, held } = await heldBackend()
    const breakers = { name: 'one', circuitBreakers: { maxRequests: 2 } }
    const { port } = await start(irOf([route(forwardTo(['one']))], [breakers]), { one: [at] })
    const gone = connect(port, '127.0.0.1', () => gone.write('GET / HTTP/1.1\r\nhost: x.test\r\n\r\n'.repeat(3)))
    await until(() => held.length === 2)
    expect((await ask(port)).status).toBe(503)
    gone.destroy()
    const answering = setInterval(() => held.splice(2).forEach((answer) => answer()), 5)
    await expect.poll(async () => (await ask(port)).status).toBe(200)
    const all = await Promise.all([ask(port), ask(port)])
    clearInterval(answering)
    expect(all.map(({ status }) => status)).toEqual([200, 200])
  })

  it('requests that wait are all answered when no endpoint is left', async () => {
    const { at, held } = await heldBackend()
    const endpoints: Record<string, Endpoint[]> = { one: [at] }
    const breakers = { name: 'one', circuitBreakers: { maxConnections: 1, maxPendingRequests: 2 } }
    const { port } = await start(irOf([route(forwardTo(['one']))], [breakers]), endpoints)
    const first = ask(port)
    await until(() => held.length === 1)
    const others = [ask(port), ask(port), ask(port)]
    // One of them is refused: the other two wait now.
    await Promise.race(others)
    endpoints['one'] = []
    held[0]?.()
    expect((await first).status).toBe(200)
    const bodies = (await Promise.all(others)).map(({ status, body }) => `${status} ${body}`)
    expect(bodies.filter((body) => body === '503 no healthy upstream')).toHaveLength(2)
  })

  it('maxRetries limits how many requests are sent again at a time', async () => {
    let calls = 0
    const at = await backend((_request, respond) => {
      calls++
      respond(500)
    })
    const retry = { count: 3, on: ['5xx'], statusCodes: [] }
    const cluster = (maxRetries: number) => [{ name: 'one', circuitBreakers: { maxRetries } }]
    const limited = await start(irOf([route(forwardTo(['one'], { retry }))], cluster(0)), { one: [at] })
    expect((await ask(limited.port)).status).toBe(500)
    expect(calls).toBe(1)
    const free = await start(irOf([route(forwardTo(['one'], { retry }))], cluster(1)), { one: [at] })
    expect((await ask(free.port)).status).toBe(500)
    expect(calls).toBe(5)
    // A request that has ended counts no longer.
    const callsOfNext = async () => {
      const before = calls
      await ask(free.port)
      return calls - before
    }
    await expect.poll(callsOfNext).toBe(4)
  })
})
