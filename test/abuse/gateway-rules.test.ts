/** A tenant with one namespace against the gateway: regular expressions and includes, while the host of another is asked. */
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
