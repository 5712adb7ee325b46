/**
 * Values that the schema of HTTPProxy allows and a data plane cannot serve: they are refused with a condition. Envoy would
 * reject all routes of the listener because of one; the built-in proxy would be busy with nothing else.
 */
import type { Obj } from '@seamark/kube/object'
import { expect, it } from 'vitest'
import { httpProxy, objectsOf, rootProxy, service } from '../../../testing/index.ts'
import { build } from '../../build/build.ts'
import { BUILD_DEFAULTS } from '../../draft/input.ts'
import { Enums } from '../../xds/protobuf.ts'
import { isKnownStatus } from './host-policy.ts'

const services = [{ name: 'web', port: 80 }]
const set = (name: string, value: string) => ({ requestHeadersPolicy: { set: [{ name, value }] } })
const headerNamed = (name: string) => ({ conditions: [{ header: { name, present: true } }] })
const queryNamed = (name: string) => ({ conditions: [{ queryParameter: { name, present: true } }] })
const check = (more: object) => ({ healthCheckPolicy: { path: '/', ...more } })
const weights = (...list: number[]) => ({ services: list.map((weight) => ({ name: 'web', port: 80, weight })) })

function reasonsOf(proxy: Obj): string[] {
  const { statuses, ir } = build(objectsOf([service('team/web'), rootProxy('victim/site', 'victim.test'), service('victim/web'), proxy]), BUILD_DEFAULTS) // prettier-ignore
  expect(ir.listeners[0]?.hosts.map(({ host }) => host)).toContain('victim.test')
  const { conditions = [] } = statuses.find(({ key }) => key === 'team/site')?.status ?? {}
  return (conditions as { errors?: { reason: string }[] }[]).flatMap(({ errors = [] }) =>
    errors.map(({ reason }) => reason),
  )
}

it.each<[string, object, string]>([
  ['a timeout of more than 292 years', { timeoutPolicy: { response: '999999999999h' } }, 'TimeoutPolicyNotValid'],
  ['a timeout of 400 digits', { timeoutPolicy: { idle: `${'9'.repeat(400)}h` } }, 'TimeoutPolicyNotValid'],
  ['a negative interval of health checks', check({ intervalSeconds: -5 }), 'HealthCheckPolicyInvalid'],
  ['a negative timeout of health checks', check({ timeoutSeconds: -5 }), 'HealthCheckPolicyInvalid'],
  ['an interval of health checks of a million years', check({ intervalSeconds: 1e13 }), 'HealthCheckPolicyInvalid'],
  ['a threshold of 2^40', check({ unhealthyThresholdCount: 2 ** 40 }), 'HealthCheckPolicyInvalid'],
  ['a range of statuses from its end', check({ expectedStatuses: [{ start: 300, end: 200 }] }), 'HealthCheckPolicyInvalid'], // prettier-ignore
  ['a health check without a path', check({ path: '' }), 'HealthCheckPolicyInvalid'],
  ['a status that Envoy does not know', { rateLimitPolicy: { local: { requests: 1, unit: 'second', responseStatusCode: 418 } } }, 'RateLimitPolicyNotValid'], // prettier-ignore
  ['a name of a header of 20 000 characters', set('x'.repeat(20_000), 'v'), 'RequestHeadersPolicyInvalid'],
  ['a value of a header of 20 000 characters', set('x', 'v'.repeat(20_000)), 'RequestHeadersPolicyInvalid'],
  ['1 001 header fields', { requestHeadersPolicy: { set: Array.from({ length: 1_001 }, (_, index) => ({ name: `x${index}`, value: 'v' })) } }, 'RequestHeadersPolicyInvalid'], // prettier-ignore
  ['a host of 300 characters', set('Host', 'a'.repeat(300)), 'RequestHeadersPolicyInvalid'],
  ['a condition on a header without a name', headerNamed(''), 'HeaderMatchConditionsNotValid'],
  ['a condition on a header whose name is none', headerNamed('a b\n'), 'HeaderMatchConditionsNotValid'],
  ['a condition on a parameter without a name', queryNamed(''), 'QueryParameterMatchConditionsNotValid'],
  ['a parameter of 2 000 characters', queryNamed('q'.repeat(2_000)), 'QueryParameterMatchConditionsNotValid'],
  ['weights of more than 32 bits', weights(2 ** 32 - 1, 2 ** 32 - 1), 'WeightsTooLarge'],
])('%s is refused', (_title, more, reason) => {
  expect(reasonsOf(rootProxy('team/site', 'team.test', { routes: [{ services, ...more }] }))).toEqual([reason])
})

it('an empty origin is refused', () => {
  const corsPolicy = { allowOrigin: ['https://a.test', ''], allowMethods: ['GET'] }
  const virtualhost = { fqdn: 'team.test', corsPolicy }
  expect(reasonsOf(rootProxy('team/site', 'team.test', { virtualhost }))).toEqual(['PolicyDidNotParse'])
})

it('a variable with a length of many digits is text', () => {
  const routes = [{ services, ...set('x', '%REQ(a):99999999999999999999% %REQ(a):10%') }]
  const { ir } = build(
    objectsOf([service('team/web'), rootProxy('team/site', 'team.test', { routes })]),
    BUILD_DEFAULTS,
  )
  const [{ requestHeaders } = {}] = ir.listeners[0]?.hosts[0]?.routes ?? []
  expect(requestHeaders?.set).toEqual([{ name: 'x', value: '%%REQ(a):99999999999999999999%% %REQ(a):10%' }])
})

it('the statuses of rate limits are those that Envoy knows', () => {
  const known = Array.from({ length: 200 }, (_, index) => 400 + index).filter((status) => isKnownStatus(status))
  expect(known).toEqual(Object.values(Enums.StatusCode).filter((status) => status >= 400))
})

it('an HTTPProxy whose tcpproxy leads through more than 64 others is not served, and fewer are', () => {
  const isServed = (length: number) => {
    const chain = Array.from({ length }, (_, index) => {
      const tcpproxy = index === length - 1 ? { services } : { include: { name: `n${index + 1}` } }
      return httpProxy(`team/n${index}`, { tcpproxy })
    })
    const virtualhost = { fqdn: 'team.test', tls: { passthrough: true } }
    const root = httpProxy('team/site', { virtualhost, tcpproxy: { include: { name: 'n0' } } })
    const { ir } = build(objectsOf([service('team/web'), root, ...chain]), BUILD_DEFAULTS)
    return ir.listeners.some(({ hosts }) => hosts.some(({ tcp }) => tcp !== undefined))
  }
  expect([60, 1_000].map(isServed)).toEqual([true, false])
})
