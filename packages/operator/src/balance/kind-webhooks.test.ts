import type { AdmissionHooks } from '@seamark/kube'
import { apiVersionOf, type Kind, type Obj } from '@seamark/kube/object'
import { describe, expect, it } from 'vitest'
import { addKindWebhooks } from './kind-webhooks.ts'
import { probeRules } from './probe-rules.ts'

const hooks = new Map<string, AdmissionHooks<Obj>>()
addKindWebhooks(
  {
    webhook: (kind: Kind, given: unknown) =>
      void hooks.set(`${kind.kind} ${apiVersionOf(kind).split('/')[1]}`, given as AdmissionHooks<Obj>),
    conversion: () => undefined,
  },
  true,
  probeRules([], 'manager'),
)

const object = (spec: object): Obj => ({ metadata: { namespace: 'web', name: 'x' }, spec }) as Obj
const info = { operation: 'CREATE' } as never

async function faults(of: string, spec: object, old?: object): Promise<readonly string[]> {
  return (await hooks.get(of)?.validate?.(object(spec), old === undefined ? undefined : object(old), info)) ?? []
}

async function defaulted(of: string, spec: object): Promise<unknown> {
  const given = object(structuredClone(spec))
  await hooks.get(of)?.default?.(given, info)
  return (given as Obj & { spec: unknown }).spec
}

describe('webhooks of the load balancing kinds', () => {
  it.each<[of: string, spec: object, faults: string[]]>([
    ['DNSLoadBalancer v1beta1', { DNSName: 'a.example.com' }, []],
    ['DNSLoadBalancer v1beta1', {}, ['spec: no dns name specified']],
    ['DNSLoadBalancer v1beta1', { DNSName: 'a.example.com', type: 'x' }, ['spec: invalid load balancer type']],
    [
      'DNSLoadBalancer v1beta1',
      { DNSName: 'a.example.com', type: 'Balanced', singleton: true },
      ['spec: invalid load balancer type: singleton and type specicied'],
    ],
    [
      'DNSLoadBalancer v1beta1',
      { DNSName: 'a.example.com', healthCheck: { bodyContains: 'x' } },
      [expect.stringContaining('spec.healthCheck: a health check with bodyContains needs a trusted namespace')],
    ],
    [
      'DNSLoadBalancer v1',
      { dnsName: 'a.example.com', healthCheck: { headers: { a: 'b' } } },
      [expect.stringContaining('spec.healthCheck: a health check with headers needs a trusted namespace')],
    ],
    ['DNSLoadBalancer v1', { dnsName: 'a.example.com', strategy: 'Exclusive', healthCheck: { path: '/ok' } }, []],
    ['DNSLoadBalancer v1', { dnsName: 'a..com' }, [expect.stringContaining("spec: invalid dns name 'a..com'")]],
    [
      'DNSLoadBalancer v1',
      { dnsName: 'a.example.com', healthCheck: { interval: 'soon' } },
      ['spec.healthCheck.interval: is not a duration like 45s or 1h30m'],
    ],
    ['DNSLoadBalancerEndpoint v1beta1', { loadbalancer: 'shop', cname: 'lb.example.net' }, []],
    ['DNSLoadBalancerEndpoint v1beta1', { loadbalancer: 'shop' }, [expect.stringContaining('neither a usable')]],
    ['DNSLoadBalancerEndpoint v1', { loadBalancer: 'shop', address: '2001:db8::1', geo: 'eu', weight: 5 }, []],
    ['DNSLoadBalancerEndpoint v1', { loadBalancer: 'shop', address: '192.0.2' }, [expect.stringContaining('neither')]],
    ['DNSProvider v1beta1', { type: 'aws', scope: { type: 'World' } }, ["spec: invalid provider scope 'World'"]],
    ['DNSProvider v1', { type: 'aws', scope: { type: 'Selected', namespaces: ['web'] } }, []],
    ['DNSProvider v1', {}, [expect.stringMatching(/^spec\.type: /)]],
  ])('%s %j: %j', async (of, spec, expected) => {
    expect(await faults(of, spec)).toEqual(expected)
  })

  it('do not report a fault that the object had before', async () => {
    expect(await faults('DNSLoadBalancer v1beta1', { healthPath: '/new' }, { healthPath: '/old' })).toEqual([])
    expect(await faults('DNSLoadBalancer v1beta1', {}, { DNSName: 'a.example.com' })).toHaveLength(1)
  })

  it('write defaults that no field of the object contradicts', async () => {
    expect(await defaulted('DNSLoadBalancer v1beta1', {})).toEqual({ type: 'Balanced' })
    expect(await defaulted('DNSLoadBalancer v1beta1', { singleton: true })).toEqual({ singleton: true })
    expect(await defaulted('DNSLoadBalancer v1', {})).toEqual({ strategy: 'Balanced' })
    expect(await defaulted('DNSLoadBalancer v1', { strategy: 'Exclusive' })).toEqual({ strategy: 'Exclusive' })
    for (const version of ['v1', 'v1beta1']) {
      expect(await defaulted(`DNSProvider ${version}`, {})).toEqual({ scope: { type: 'Cluster' } })
      const scope = { type: 'Selected', namespaces: ['web'] }
      expect(await defaulted(`DNSProvider ${version}`, { scope })).toEqual({ scope })
    }
  })
})
