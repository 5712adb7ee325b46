import { createAuthority } from '@seamark/kube/certificates'
import type { Obj } from '@seamark/kube/object'
import { describe, expect, it } from 'vitest'
import { object, objectsOf } from '../../testing/index.ts'
import { build } from '../build/build.ts'
import { BUILD_DEFAULTS } from '../draft/input.ts'

const run = (...all: Obj[]) => build(objectsOf(all), { ...BUILD_DEFAULTS, mode: 'global' })

const leaf = (cluster: string, addresses: string[], phase = 'Active') => ({ cluster, phase, addresses })
const member = (name: string, extra: object = {}) => ({ name, state: 'Active', ...extra })

function global(name: string, leaves: object[], spec: object = {}): Obj {
  return object('GlobalIngress', `a/${name}`, {
    spec: {
      rootRef: { kind: 'HTTPRoute', name },
      hosts: [{ host: 'shop.test' }],
      clusters: [member('eu'), member('us')],
      strategy: 'roundRobin',
      health: { scheme: 'http', port: 8080, path: '/healthz' },
      ...spec,
    },
    status: { leaves },
  })
}

/** `host:port weight priority` of the only cluster of requests. */
function addressesOf(result: ReturnType<typeof run>): string[] {
  const { upstream } = result.ir.clusters[0] ?? {}
  if (upstream?.kind !== 'addresses') return []
  return upstream.addresses.map(({ host, port, weight, priority }) => `${host}:${port} ${weight} ${priority}`)
}

describe('mode global', () => {
  it('leads a host to the addresses of its clusters, with the health check of the policy', () => {
    const result = run(global('shop', [leaf('eu', ['192.0.2.1', '192.0.2.2']), leaf('us', ['lb.us.test'])]))
    expect(addressesOf(result)).toEqual([
      '192.0.2.1:8080 50000 0',
      '192.0.2.2:8080 50000 0',
      'lb.us.test:8080 100000 0',
    ])
    expect(result.ir.clusters[0]?.healthCheck).toMatchObject({ path: '/healthz', host: 'shop.test' })
    expect(result.ir.listeners[0]?.hosts.map(({ host }) => host)).toEqual(['shop.test'])
  })

  it('follows weights and the order of failover, and uses drained and unhealthy leaves last', () => {
    const leaves = [leaf('eu', ['192.0.2.1']), leaf('us', ['192.0.2.2'])]
    const weighted = { strategy: 'weighted', clusters: [member('eu', { weight: 3 }), member('us', { weight: 1 })] }
    expect(addressesOf(run(global('shop', leaves, weighted)))).toEqual([
      '192.0.2.1:8080 3000 0',
      '192.0.2.2:8080 1000 0',
    ])
    const failover = { strategy: 'failover', clusters: [member('eu', { priority: 7 }), member('us', { priority: 2 })] }
    expect(addressesOf(run(global('shop', leaves, failover)))).toEqual([
      '192.0.2.2:8080 100000 0',
      '192.0.2.1:8080 100000 1',
    ])
    const drained = { clusters: [member('eu', { state: 'Draining' }), member('us')] }
    expect(addressesOf(run(global('shop', leaves, drained)))).toEqual([
      '192.0.2.2:8080 100000 0',
      '192.0.2.1:8080 100000 1',
    ])
    const unhealthy = [leaf('eu', ['192.0.2.1'], 'Unhealthy'), leaf('us', ['192.0.2.2'])]
    expect(addressesOf(run(global('shop', unhealthy)))[1]).toBe('192.0.2.1:8080 100000 1')
    expect(addressesOf(run(global('shop', [leaf('eu', ['192.0.2.1'], 'Pending')])))).toEqual([])
  })

  it('does not lead to addresses of this machine or to cloud metadata, and says so', () => {
    const result = run(global('shop', [leaf('eu', ['127.0.0.1', '169.254.169.254', 'a b']), leaf('us', ['192.0.2.2'])]))
    expect(addressesOf(result)).toEqual(['192.0.2.2:8080 100000 0'])
    expect(result.findings.map(({ reason }) => reason)).toEqual(['AddressRefused', 'AddressRefused', 'AddressRefused'])
  })

  it('takes paths and certificates from a root Ingress, for the hosts that it owns only', async () => {
    const authority = await createAuthority({ commonName: 'test' })
    const { certPem, keyPem } = await authority.issue({ commonName: 'x', dnsNames: ['shop.test'], usages: 'server' })
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    const rule = (host: string, path: string) => ({
      host,
      http: { paths: [{ path, pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }] },
    })
    const root = object('Ingress', 'a/shop', {
      spec: {
        tls: [{ hosts: ['shop.test', 'stolen.test'], secretName: 'tls' }],
        rules: [rule('shop.test', '/cart'), rule('stolen.test', '/')],
      },
    })
    const secret = object('Secret', 'a/tls', {
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': base64(certPem), 'tls.key': base64(keyPem) },
    })
    const { ir } = run(
      root,
      secret,
      global('shop', [leaf('eu', ['192.0.2.1'])], { rootRef: { kind: 'Ingress', name: 'shop' } }),
    )
    const hosts = ir.listeners.flatMap(({ protocol, hosts: all }) =>
      all.map(({ host, routes }) => `${protocol} ${host} ${routes.map(({ match }) => match.path.value).join(' ')}`),
    )
    expect(hosts).toEqual(['http shop.test /cart', 'https shop.test /cart'])
  })

  it('passes TLS through where this cluster has no certificate', () => {
    const result = run(global('shop', [leaf('eu', ['192.0.2.1'])], { health: { scheme: 'https', port: 443 } }))
    const [http, https] = result.ir.listeners
    expect(https?.hosts[0]).toMatchObject({ host: 'shop.test', tcp: { backends: [{ weight: 1 }] } })
    const name = https?.hosts[0]?.tcp?.backends[0]?.cluster
    expect(result.ir.clusters.find((each) => each.name === name)?.protocol).toBe('http1')
    expect(http?.hosts[0]?.routes[0]?.action.kind).toBe('forward')
  })

  it('survives objects that no schema was enforced on', () => {
    const odd = object('GlobalIngress', 'a/odd', { spec: { hosts: 'x', clusters: 7 }, status: { leaves: [null, 3] } })
    const result = run(odd, global('shop', [leaf('eu', ['192.0.2.1'])]))
    expect(result.ir.listeners[0]?.hosts.map(({ host }) => host)).toEqual(['shop.test'])
  })
})
