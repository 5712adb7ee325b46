import { describe, expect, it } from 'vitest'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import type { GlobalIngressPolicy } from '../api/global-ingress-policy.ts'
import { BalanceConfig, balanceDefaults } from './config.ts'
import { probeOf } from './load-balancer.ts'
import { findProbeFault, probeRules } from './probe-rules.ts'

type HealthCheck = DNSLoadBalancer['spec']['healthCheck']

const NAME = 'shop.example.com'
const balancer = (healthCheck: HealthCheck, namespace = 'tenant'): DNSLoadBalancer => ({
  metadata: { namespace, name: 'shop' },
  spec: { DNSName: NAME, ...(healthCheck !== undefined && { healthCheck }) },
})
const strict = probeRules([], 'manager')
const faultOf = (healthCheck: HealthCheck, namespace?: string, rules = strict, name = NAME) =>
  findProbeFault(balancer(healthCheck, namespace), name, rules)

describe('a namespace that is not trusted', () => {
  it.each<[string, HealthCheck]>([
    ['nothing', undefined],
    ['timing, status codes and a port of services', { interval: '1s', statusCodes: [401], port: 8443 }],
    ['no headers', { headers: {} }],
    ['its own name, however it is written', { host: 'SHOP.example.com.:8443', sni: NAME }],
    ['the ports of the web', { port: 80 }],
  ])('may have a health check with %s', (_what, check) => {
    expect(faultOf(check)).toBeUndefined()
  })

  it.each<[string, HealthCheck]>([
    ['bodyContains', { bodyContains: 'a' }],
    ['headers', { headers: { authorization: 'guess' } }],
    ['a host other than the DNS name', { host: 'bank.example.com' }],
    ['a host other than the DNS name', { host: `${NAME}.bank.example.com` }],
    ['a host other than the DNS name', { host: '127.0.0.1' }],
    ['an sni other than the DNS name', { sni: 'bank.example.com' }],
    ['the port 22', { port: 22 }],
    ['the port 2379', { port: 2379 }],
    ['the port 6443', { port: 6443 }],
    ['the port 10250', { scheme: 'tcp', port: 10_250 }],
  ])('may not have one with %s', (what, check) => {
    expect(faultOf(check)).toBe(
      `a health check with ${what} needs a trusted namespace: remove it, or add 'tenant' to balance.trustedNamespaces`,
    )
  })

  it('may ask for names that its wildcard covers, and no other', () => {
    const ask = (host: string) => faultOf({ host }, 'tenant', strict, '*.example.com')
    expect([ask('shop.example.com'), ask('a.shop.example.com')]).toEqual([undefined, undefined])
    for (const host of ['example.com', '.example.com', 'bank.example.net', 'badexample.com'])
      expect(ask(host)).toContain('a host other than the DNS name')
  })

  it('may have what the default policy of the fleet gives every root', () => {
    const health = { host: 'probe.example.com', port: 22 }
    const policy = { metadata: { namespace: 'manager', name: 'default' }, spec: { health } } as GlobalIngressPolicy
    const rules = probeRules([], 'manager', { get: (_, key) => (key === 'manager/default' ? policy : undefined) })
    expect(faultOf(health, 'tenant', rules)).toBeUndefined()
    expect(faultOf({ ...health, port: 23 }, 'tenant', rules)).toContain('the port 23')
    expect(faultOf(health, 'tenant', probeRules([], 'manager', { get: () => undefined }))).toContain('the port 22')
  })
})

it('a trusted namespace may have every health check: that of the manager, those of the setting, all with *', () => {
  const check = { bodyContains: 'a', headers: { a: 'b' }, host: 'x', sni: 'y', port: 22 }
  expect(faultOf(check, 'manager')).toBeUndefined()
  expect(faultOf(check, 'platform', probeRules(['platform'], 'manager'))).toBeUndefined()
  expect(faultOf(check, 'tenant', probeRules(['*'], 'manager'))).toBeUndefined()
  expect(faultOf(check, 'tenant', probeRules(['platform'], 'manager'))).toContain('bodyContains, headers')
})

it('in seamark run no redirect is followed, whatever the load balancer says', () => {
  const defaults = balanceDefaults(BalanceConfig.parse({}))
  for (const check of [undefined, { maxRedirects: 10 }])
    expect(probeOf(balancer(check), NAME, '192.0.2.1', 'a', defaults).request.maxRedirects).toBe(0)
})
