/** A tenant with one namespace against the gateway: regular expressions and includes, while the host of another is asked. */
import { Ingress, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type AttackedGateway, startAttackedGateway } from './gateway-victim.ts'

const waiting = { timeout: 60_000 }
const VICTIM = { host: 'victim.test' }
let gateway: AttackedGateway

const direct = { directResponsePolicy: { statusCode: 200 } }
const proxy = (key: string, spec: object): HTTPProxy => {
  const [namespace = '', name = ''] = key.split('/')
  return { metadata: { namespace, name }, spec }
}
const add = async (key: string, spec: object) => gateway.client.create(HTTPProxy, proxy(key, spec))
const root = (fqdn: string, spec: object) => ({ virtualhost: { fqdn }, ...spec })
const regexes = (count: number, pattern: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => ({ conditions: [{ regex: pattern(index) }], ...direct }))
const prefixes = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ conditions: [{ prefix: `/r${index}` }], ...direct }))
const includes = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ name, conditions: [{ prefix: `/i${index}` }] }))
const isDecided = async (key: string) => (await gateway.statusOf(key))?.currentStatus !== undefined
const decided = async (...keys: string[]) => {
  for (const key of keys) await expect.poll(async () => isDecided(key), waiting).toBe(true)
}
const reasonsOf = async (key: string) =>
  (await gateway.statusOf(key))?.conditions?.flatMap(({ reason, errors = [] }) => [
    reason,
    ...errors.map((each) => each.reason),
  ])

beforeEach(async () => {
  gateway = await startAttackedGateway()
  await add(
    'victim/site',
    root('victim.test', { routes: [direct, ...regexes(10, (index) => `/api/v${index}/[a-z]+`)] }),
  )
}, 60_000)
afterEach(async () => {
  try {
    expect(gateway.isRunning()).toBe(true)
  } finally {
    await gateway.stop()
  }
})

it('requests that keep regular expressions busy are answered with 500, counted and reported', async () => {
  await gateway.attack('ten routes (a{0,30}){0,30}, requests of 15 000 octets', VICTIM, async () => {
    await add(
      'tenant/evil',
      root('evil.test', { routes: [...regexes(10, (index) => `/((a{0,30}){0,30})b0${index}`), direct] }),
    )
    await decided('tenant/evil')
    await expect.poll(async () => gateway.status({ host: 'evil.test', path: '/' }), waiting).toBe(200)
    const path = `/${'a'.repeat(15_000)}`
    for (let round = 0; round < 50; round++)
      expect([200, 500]).toContain(await gateway.status({ host: 'evil.test', path: `${path}${round}` }))
  })
  expect(await gateway.metrics()).toMatch(/^seamark_gateway_regex_exceeded_total [1-9]/m)
  await expect.poll(async () => reasonsOf('tenant/evil'), waiting).toContain('RegexStepsExceeded')
})

it('900 large expressions in each of two objects are measured, not compiled', async () => {
  await gateway.attack('2 × 900 patterns ([a-z0-9]{1,30}){1,30}', VICTIM, async () => {
    for (const name of ['one', 'two']) {
      const pattern = (index: number) => `/(([a-z0-9]{1,30}){1,30})x0${index}`
      await add(`tenant/${name}`, root(`${name}.test`, { routes: regexes(900, pattern) }))
    }
    await decided('tenant/one', 'tenant/two')
    for (let round = 0; round < 20; round++)
      expect(await gateway.status({ host: 'one.test', path: `/${'a'.repeat(10_000)}` })).toBe(500)
  })
})

it('many small expressions of one tenant are refused, and new ones of others are not', async () => {
  await gateway.attack('2 × 5 200 and 10 × 1 000 small patterns', VICTIM, async () => {
    for (const name of ['one', 'two'])
      await add(`tenant/${name}`, root(`${name}.test`, { routes: regexes(5_200, (index) => `/${name}${index}`) }))
    for (let part = 0; part < 10; part++)
      await add(
        `tenant/part${part}`,
        root(`part${part}.test`, { routes: regexes(1_000, (index) => `/p${part}x${index}`) }),
      )
    await decided('tenant/one', 'tenant/two', 'tenant/part9')
    await add('victim/late', root('late.test', { routes: regexes(1, () => '/another[0-9]') }))
    await expect.poll(async () => gateway.status({ host: 'late.test', path: '/another1' }), waiting).toBe(200)
  })
  expect([await reasonsOf('tenant/one'), await reasonsOf('tenant/part9'), await reasonsOf('victim/late')]).toEqual([
    ['ErrorPresent', 'TooManyPatterns'],
    ['Valid'],
    ['Valid'],
  ])
})

it('77 kB of includes are 9.9 million routes, which are counted and not made', async () => {
  await gateway.attack('1 000 routes included 100 × 99 times', VICTIM, async () => {
    await add('tenant/leaf', { routes: prefixes(1_000) })
    await add('tenant/middle', { includes: includes('leaf', 100) })
    await add('tenant/root', root('root.test', { includes: includes('middle', 99) }))
    await expect.poll(async () => reasonsOf('tenant/root'), waiting).toEqual(['ErrorPresent', 'TooManyRoutes'])
    // What is allowed is a long build: 95 000 routes of one namespace.
    for (let index = 0; index < 5; index++)
      await add(`tenant/large${index}`, root(`large${index}.test`, { includes: includes('leaf', 19) }))
    await expect.poll(async () => gateway.status({ host: 'large4.test', path: '/i18/r999' }), waiting).toBe(200)
  })
})

it('conditions that includes repeat are counted and not made', async () => {
  await gateway.attack('3 000 routes included with 3 000 conditions', VICTIM, async () => {
    const conditions = Array.from({ length: 3_000 }, (_, index) => ({
      header: { name: `x-${index}`, notcontains: 'v' },
    }))
    await add('tenant/leaf', { routes: prefixes(3_000) })
    await add('tenant/root', root('root.test', { includes: [{ name: 'leaf', conditions }] }))
    await expect.poll(async () => reasonsOf('tenant/root'), waiting).toEqual(['ErrorPresent', 'RoutesTooLarge'])
  })
})

it('requests with long queries and headers to a host with thousands of conditions', async () => {
  await gateway.attack('6 000 conditions on the query, 6 000 on a header, requests of 50 kB', VICTIM, async () => {
    const services = { directResponsePolicy: { statusCode: 200 } }
    const of = (condition: (index: number) => object) =>
      Array.from({ length: 6_000 }, (_, index) => ({ conditions: [condition(index)], ...services }))
    const query = of((index) => ({ queryParameter: { name: `q${index}`, present: true } }))
    const header = of((index) => ({ header: { name: 'x', contains: `b${index}`, ignoreCase: true } }))
    await add('tenant/query', root('query.test', { routes: [...query, direct] }))
    await add('tenant/header', root('header.test', { routes: [...header, direct] }))
    await decided('tenant/query', 'tenant/header')
    await expect.poll(async () => gateway.status({ host: 'query.test' }), waiting).toBe(200)
    await expect.poll(async () => gateway.status({ host: 'header.test' }), waiting).toBe(200)
    for (let round = 0; round < 20; round++) {
      expect(await gateway.status({ host: 'query.test', path: `/?${'a&'.repeat(25_000)}${round}` })).toBe(200)
      expect(await gateway.status({ host: 'header.test', headers: { x: 'A'.repeat(50_000) } })).toBe(500)
    }
  })
})

it('texts of 100 kB in objects', async () => {
  const port = { name: 'http', port: 80, protocol: 'TCP' as const }
  await gateway.client.create(Service, { metadata: { namespace: 'tenant', name: 'web' }, spec: { ports: [port] } })
  await gateway.attack('a rewrite to 100 000 slashes, annotations of 100 kB with 5 000 paths', VICTIM, async () => {
    const pathRewritePolicy = { replacePrefix: [{ replacement: `/${'/'.repeat(100_000)}a` }] }
    const route = { conditions: [{ prefix: '/r' }], services: [{ name: 'web', port: 80 }], pathRewritePolicy }
    await add('tenant/slashes', root('slashes.test', { routes: [route] }))
    const long = Array.from({ length: 15_000 }, (_, index) => `/w${index}`).join(',')
    const backend = { service: { name: 'web', port: { number: 80 } } }
    const paths = Array.from({ length: 5_000 }, (_, index) => ({ path: `/p${index}`, pathType: 'Prefix', backend }))
    await gateway.client.create(Ingress, {
      metadata: {
        namespace: 'tenant',
        name: 'long',
        annotations: { 'projectcontour.io/websocket-routes': long, 'projectcontour.io/retry-on': long },
      },
      spec: { rules: [{ host: 'long.test', http: { paths } }] },
    } as Ingress)
    await decided('tenant/slashes')
    // No endpoint: the route is there.
    await expect.poll(async () => gateway.status({ host: 'long.test', path: '/p4999' }), waiting).toBe(503)
    await expect.poll(async () => gateway.status({ host: 'slashes.test', path: '/r' }), waiting).toBe(503)
  })
})
