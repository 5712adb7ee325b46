/** Texts of objects that are as long as the API server stores them: a build takes no longer than its parts allow. */
import type { Obj } from '@seamark/kube/object'
import { expect, it } from 'vitest'
import { object, objectsOf, rootProxy, service } from '../../testing/index.ts'
import { buildParts } from '../build/build.ts'
import { BUILD_DEFAULTS } from '../draft/input.ts'
import { withoutTrailingSlashes } from '../ir/path-text.ts'

/** Of the time of one part: what these objects took before was seconds, and a busy machine may add some. */
const MOST_MS = 1_000
const SLASHES = `/${'/'.repeat(200_000)}a`
const backend = { service: { name: 'web', port: { number: 80 } } }

function ingress(paths: readonly string[], annotations: object, spec: object = {}): Obj {
  const rules = [{ host: 'team.test', http: { paths: paths.map((path) => ({ path, pathType: 'Prefix', backend })) } }]
  return object('Ingress', 'team/site', { spec: { rules, ...spec } }, { annotations })
}

/** The routes of a host, and the longest part of the build in milliseconds. */
function built(...objects: Obj[]) {
  const parts = buildParts(objectsOf([service('team/web'), service('victim/web'), ...objects]), BUILD_DEFAULTS)
  for (let longest = 0; ;) {
    const begun = performance.now()
    const { done, value } = parts.next()
    longest = Math.max(longest, performance.now() - begun)
    if (done !== true) continue
    const [http] = value.ir.listeners
    return { longest, routesOf: (host: string) => http?.hosts.find((each) => each.host === host)?.routes ?? [] }
  }
}

it.each([['/a'], ['/'], ['//'], ['/a//'], ['']])('the slashes at the end of %j are cut off', (text) => {
  expect(withoutTrailingSlashes(text)).toBe(text.replace(/\/+$/, ''))
})

it('a rewrite to many slashes', () => {
  const pathRewritePolicy = { replacePrefix: [{ replacement: SLASHES }] }
  const services = [{ name: 'web', port: 80 }]
  const route = { conditions: [{ prefix: '/r' }], services, pathRewritePolicy }
  const { longest, routesOf } = built(rootProxy('team/site', 'team.test', { routes: [route] }))
  expect(routesOf('team.test')).toHaveLength(2)
  expect(longest).toBeLessThan(MOST_MS)
})

it('annotations of an Ingress with thousands of paths are read once', () => {
  const paths = Array.from({ length: 5_000 }, (_, index) => `/p${index}`)
  const long = Array.from({ length: 15_000 }, (_, index) => `/w${index}`).join(',')
  const { longest, routesOf } = built(
    ingress(paths, { 'projectcontour.io/websocket-routes': `${long},/p1`, 'projectcontour.io/retry-on': long }),
  )
  const actions = routesOf('team.test').map(({ action }) => (action.kind === 'forward' ? action : undefined))
  expect(actions).toHaveLength(5_000)
  expect(actions.filter((action) => action?.hasWebsocket === true)).toHaveLength(1)
  expect(new Set(actions.map((action) => action?.retry)).size).toBe(1)
  expect(longest).toBeLessThan(MOST_MS)
})
