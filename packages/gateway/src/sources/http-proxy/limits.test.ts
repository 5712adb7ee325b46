/** How much one object and one namespace may take: counted before anything is made. */
import { httpProxy, objectsOf, rootProxy, service } from '../../../testing/index.ts'
import type { Obj } from '@seamark/kube/object'
import { expect, it } from 'vitest'
import { build } from '../../build/build.ts'
import { BUILD_DEFAULTS } from '../../draft/input.ts'

const routes = (count: number, prefix = '/r') =>
  Array.from({ length: count }, (_, index) => ({
    conditions: [{ prefix: `${prefix}${index}` }],
    services: [{ name: 'web', port: 80 }],
  }))
const including = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ name, conditions: [{ prefix: `/i${index}` }] }))

function built(...objects: Obj[]) {
  const { ir, statuses } = build(objectsOf([service('team/web'), service('victim/web'), ...objects]), BUILD_DEFAULTS)
  const [http] = ir.listeners
  const reasonsOf = (key: string) => {
    const status = statuses.find((each) => each.kind === 'HTTPProxy' && each.key === key)?.status
    const conditions = (status?.['conditions'] ?? []) as { errors?: { reason: string }[] }[]
    return (conditions[0]?.errors ?? []).map(({ reason }) => reason)
  }
  return { hosts: new Map(http?.hosts.map(({ host, routes: list }) => [host, list.length])), reasonsOf }
}

it('a tree of 77 kB with 9.9 million routes is refused before they are made, and others are served', () => {
  const { hosts, reasonsOf } = built(
    httpProxy('team/leaf', { routes: routes(1_000) }),
    httpProxy('team/middle', { includes: including('leaf', 100) }),
    rootProxy('team/root', 'root.test', { routes: [], includes: including('middle', 99) }),
    rootProxy('victim/site', 'victim.test'),
  )
  expect([...hosts]).toEqual([['victim.test', 1]])
  expect(reasonsOf('team/root')).toEqual(['TooManyRoutes'])
})

it('includes of nothing are counted too, and cycles end', () => {
  const nodes = Array.from({ length: 16 }, (_, index) => `n${index}`)
  const { hosts, reasonsOf } = built(
    ...nodes.map((name) =>
      httpProxy(`team/${name}`, {
        includes: nodes.map((other) => ({ name: other, conditions: [{ prefix: `/${other}` }] })),
      }),
    ),
    rootProxy('team/root', 'root.test', { routes: [], includes: [{ name: 'n0' }] }),
    rootProxy('victim/site', 'victim.test'),
  )
  expect([...hosts]).toEqual([['victim.test', 1]])
  expect(reasonsOf('team/root')).toEqual(['TooManyIncludes'])
})

it('a namespace has 100 000 routes at most; the younger roots are refused', () => {
  const leaf = httpProxy('team/leaf', { routes: routes(1_000) })
  const roots = Array.from({ length: 6 }, (_, index) =>
    rootProxy(`team/root-${index}`, `r${index}.test`, { routes: [], includes: including('leaf', 19) }),
  )
  const { hosts, reasonsOf } = built(leaf, ...roots, rootProxy('victim/site', 'victim.test'))
  expect([...hosts.keys()]).toEqual(['r0.test', 'r1.test', 'r2.test', 'r3.test', 'r4.test', 'victim.test'])
  expect(reasonsOf('team/root-5')).toEqual(['TooManyRoutes'])
})

it('an object has 1 000 regular expressions at most, also where it is included', () => {
  const regexes = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      conditions: [{ regex: `/x${index}.*` }],
      services: [{ name: 'web', port: 80 }],
    }))
  const { hosts, reasonsOf } = built(
    rootProxy('team/many', 'many.test', { routes: regexes(1_001) }),
    httpProxy('team/leaf', { routes: regexes(1_001) }),
    rootProxy('team/including', 'including.test', {
      routes: routes(1),
      includes: [{ name: 'leaf', conditions: [{ prefix: '/leaf' }] }],
    }),
    rootProxy('team/allowed', 'allowed.test', { routes: regexes(1_000) }),
  )
  expect([...hosts]).toEqual([
    ['allowed.test', 1_000],
    ['including.test', 1],
  ])
  expect(reasonsOf('team/many')).toEqual(['TooManyPatterns'])
  expect(reasonsOf('team/leaf')).toEqual(['TooManyPatterns'])
})

it('the names of many duplicates are listed in part', () => {
  const count = 2_000
  const duplicates = Array.from({ length: count }, (_, index) => rootProxy(`team/d${index}`, 'same.test'))
  const { statuses } = build(objectsOf(duplicates), BUILD_DEFAULTS)
  expect(JSON.stringify(statuses).length).toBeLessThan(count * 1_000)
})

it.each([
  ['header', (index: number) => ({ header: { name: `x-${index}`, notcontains: 'v' } })],
  ['regular expression', (index: number) => ({ header: { name: `x-${index}`, regex: `[a-z]{1,${index + 1}}` } })],
])('conditions of an include count for each route that it leads to: %s', (_title, condition) => {
  const conditions = Array.from({ length: 900 }, (_, index) => condition(index))
  const { hosts, reasonsOf } = built(
    httpProxy('team/leaf', { routes: routes(3_000) }),
    rootProxy('team/root', 'root.test', { routes: [], includes: [{ name: 'leaf', conditions }] }),
    rootProxy('team/small', 'small.test', {
      routes: [],
      includes: [{ name: 'leaf', conditions: conditions.slice(0, 5) }],
    }),
    rootProxy('victim/site', 'victim.test'),
  )
  expect([...hosts]).toEqual([
    ['small.test', 3_000],
    ['victim.test', 1],
  ])
  expect(reasonsOf('team/root')).toEqual(['RoutesTooLarge'])
})

it('policies of a route count each time it is included', () => {
  const set = Array.from({ length: 1_000 }, (_, index) => ({ name: `x-${index}`, value: 'v'.repeat(100) }))
  const [route] = routes(1)
  const { hosts, reasonsOf } = built(
    httpProxy('team/leaf', { routes: [{ ...route, requestHeadersPolicy: { set } }] }),
    rootProxy('team/root', 'root.test', { routes: [], includes: including('leaf', 5_000) }),
    rootProxy('victim/site', 'victim.test'),
  )
  expect([...hosts]).toEqual([['victim.test', 1]])
  expect(reasonsOf('team/root')).toEqual(['RoutesTooLarge'])
})
