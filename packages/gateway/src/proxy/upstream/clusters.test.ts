import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../ir/endpoint.ts'
import { ask, backend, CLOSED, forwardTo, irOf, manualClock, route, start } from '../../../testing/proxy-fixture.ts'
import type { Cluster } from '../../ir/model.ts'

describe('the proxy with several endpoints', () => {
  it('divides requests by weight', async () => {
    const [one, two] = [await backend(), await backend()]
    const action = forwardTo([], {
      backends: [
        { cluster: 'one', weight: 90 },
        { cluster: 'two', weight: 10 },
      ],
    })
    let step = 0
    const { port } = await start(
      irOf([route(action)], [{ name: 'one' }, { name: 'two' }]),
      { one: [one], two: [two] },
      { random: () => (step++ % 100) / 100 },
    )
    for (let count = 0; count < 100; count++) await ask(port)
    expect([one.seen.length, two.seen.length]).toEqual([90, 10])
  })

  it('answers 500 for the share of backends that do not exist', async () => {
    const one = await backend()
    const { port } = await start(
      irOf([route(forwardTo(['one'], { invalidWeight: 1 }))]),
      { one: [one] },
      { random: () => 0.9 },
    )
    expect((await ask(port)).status).toBe(500)
  })

  it('keeps a client on one endpoint by cookie', async () => {
    const [one, two] = [
      await backend((_r, respond) => respond(200, {}, '1')),
      await backend((_r, respond) => respond(200, {}, '2')),
    ]
    const action = forwardTo(['one'], { hash: [{ kind: 'cookie', name: 'sticky' }] })
    const { port } = await start(irOf([route(action)], [{ name: 'one', balancing: 'hash' }]), { one: [one, two] })
    const first = await ask(port)
    const cookie = first.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    expect(cookie).toMatch(/^sticky=/)
    for (let count = 0; count < 5; count++)
      expect((await ask(port, '/', { headers: { cookie } })).body).toBe(first.body)
  })

  it('takes endpoints that fail their health check out, and back in', async () => {
    let isSick = true
    const sick = await backend((request, respond) =>
      respond(request.url === '/health' && isSick ? 500 : 200, {}, 'sick'),
    )
    const fit = await backend((_request, respond) => respond(200, {}, 'fit'))
    const clock = manualClock()
    const healthCheck = {
      path: '/health',
      host: 'h',
      intervalMs: 1_000,
      timeoutMs: 500,
      unhealthyThreshold: 1,
      healthyThreshold: 1,
      expectedStatuses: [],
    }
    const { port } = await start(
      irOf([route(forwardTo(['one']))], [{ name: 'one', healthCheck }]),
      { one: [sick, fit] },
      { clock },
    )
    const answers = async () => new Set([(await ask(port)).body, (await ask(port)).body, (await ask(port)).body])
    await expect.poll(answers).toEqual(new Set(['fit']))
    isSick = false
    clock.advance(1_000)
    await expect.poll(answers).toEqual(new Set(['fit', 'sick']))
  })
})

describe('addresses of clusters', () => {
  const addresses = (...list: [Endpoint, number, number][]): Partial<Cluster> => ({
    name: 'one',
    upstream: {
      kind: 'addresses',
      addresses: list.map(([{ host, port }, weight, priority]) => ({ host, port, weight, priority })),
    },
  })

  it('get requests by weight, and those of a lower priority only when the others fail their health check', async () => {
    let isUp = true
    const [main, spare] = await Promise.all([
      backend((_request, respond) => respond(isUp ? 200 : 500, { 'x-is': 'main' })),
      backend((_request, respond) => respond(200, { 'x-is': 'spare' })),
    ])
    const healthCheck = {
      path: '/healthz',
      host: 'h',
      intervalMs: 10,
      timeoutMs: 1_000,
      unhealthyThreshold: 1,
      healthyThreshold: 1,
      expectedStatuses: [],
    }
    const cluster = { ...addresses([main, 1, 0], [spare, 100, 1]), healthCheck }
    const { port } = await start(irOf([route(forwardTo(['one']))], [cluster]), {})
    const who = async () => (await ask(port)).headers['x-is']
    expect(await who()).toBe('main')
    isUp = false
    await expect.poll(who, { interval: 1 }).toBe('spare')
    isUp = true
    await expect.poll(who, { interval: 1 }).toBe('main')
  })

  it('are tried elsewhere when one does not answer at all', async () => {
    const alive = await backend()
    const retry = { count: 1, on: ['connect-failure'], statusCodes: [] }
    const { port } = await start(
      irOf([route(forwardTo(['one'], { retry }))], [addresses([CLOSED, 1_000, 0], [alive, 1, 1])]),
      {},
    )
    expect((await ask(port)).status).toBe(200)
    expect(alive.seen).toHaveLength(1)
  })
})
