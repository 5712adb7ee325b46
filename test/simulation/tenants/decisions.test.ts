/**
 * INV-14 and INV-15 in the decisions of every capability that gives a host to somebody: records, gateway, balance and fleet. A
 * violation shrinks to the fewest grants and objects that show it.
 *
 * These worlds are models: objects in, decision out, without a manager. That a manager does what is decided, after every single
 * write, is played in claims.test.ts with fewer worlds.
 */
import { build, BUILD_DEFAULTS } from '@seamark/gateway'
import { objectsOf } from '@seamark/gateway/testing'
import { BALANCE_DEFAULTS, claimNames, type HostClaim, RecordsConfig } from '@seamark/operator'
import { applied, type Claimant, decideClaim, desiredOf, newClaim, plan, tenantRules } from '@seamark/operator/testing'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  addressOf,
  balancerOf,
  claimantOf,
  type Declared,
  type DeclaredWorld,
  declaredWorlds,
  endpointOf,
  HOSTS,
  namingOf,
  oldestOf,
  routeOf,
  services,
} from './declared-world.ts'
import { mayUse } from './world.ts'

const WORLDS = Number(process.env['SEAMARK_WORLDS'] ?? 2_000)

/** Each world is another property, so that one which fails is shrunk by itself. */
function holds(check: (world: DeclaredWorld) => void): void {
  fc.assert(fc.property(declaredWorlds, check), { numRuns: WORLDS })
}

const isWildcard = (host: string): boolean => host.startsWith('*.')

it('records: a name has the address of the oldest DNSEndpoint that may use it', () => {
  const config = RecordsConfig.parse({ enabled: true, owner: 'world' })
  holds((world) => {
    const rules = tenantRules(config, world.grants, 'manager')
    const objects = world.objects.filter(({ kind }) => kind === 'DNSEndpoint').map((each) => endpointOf(each))
    const { desired, unusable } = desiredOf(objects, 60, rules)
    const zone = applied([], plan({ desired, unusable }).changes)
    for (const host of HOSTS) {
      const owner = oldestOf(namingOf(world, 'DNSEndpoint', host))
      const found = zone.find(({ name, type }) => name === `${host}.` && type === 'A')?.values
      // A wildcard answers for names of everybody: it waits for an approval.
      expect([host, found]).toEqual([host, owner === undefined || isWildcard(host) ? undefined : [addressOf(owner)]])
    }
  })
})

/** Namespaces that serve a host, in the order of its routes. */
function servingOf(objects: readonly Declared[], { grants }: DeclaredWorld) {
  const all = [...services, ...objects.map((each) => routeOf(each))]
  const { ir } = build(objectsOf(all), { ...BUILD_DEFAULTS, grants })
  const hosts = ir.listeners.find(({ protocol }) => protocol === 'http')?.hosts ?? []
  return {
    ir,
    of: (host: string) => hosts.find((each) => each.host === host)?.routes.map(({ origin }) => origin) ?? [],
  }
}

it('gateway: a host has the routes of the objects that may use it, and what others declare changes nothing', () => {
  holds((world) => {
    const objects = world.objects.filter(({ kind }) => kind === 'Ingress' || kind === 'HTTPProxy')
    const { ir, of } = servingOf(objects, world)
    for (const host of HOSTS) {
      const proxies = namingOf(world, 'HTTPProxy', host)
      const ingress = oldestOf(namingOf(world, 'Ingress', host))
      const serving = of(host).map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`)
      for (const { namespace } of of(host))
        expect([host, namespace, mayUse(world.grants, namespace, host)]).toEqual([host, namespace, true])
      // Two HTTPProxies for one host are both invalid, as in Contour; of Ingresses the oldest has a path.
      const proxy = proxies.length === 1 && !isWildcard(host) ? proxies[0] : undefined
      if (proxy !== undefined) expect(serving).toContain(`HTTPProxy ${proxy.tenant}/${proxy.name}`)
      if (proxies.length !== 1) expect(serving.filter((each) => each.startsWith('HTTPProxy'))).toEqual([])
      if (proxies.length === 0)
        expect([host, serving]).toEqual([
          host,
          ingress === undefined ? [] : [`Ingress ${ingress.tenant}/${ingress.name}`],
        ])
    }
    const granted = objects.filter(({ tenant, host }) => mayUse(world.grants, tenant, host))
    expect(ir).toEqual(servingOf(granted, world).ir)
    expect(ir).toEqual(servingOf(objects.toReversed(), world).ir)
  })
})

it('balance: a name is held by its oldest load balancer, in whatever order they are read', () => {
  holds(({ objects }) => {
    const balancers = objects.filter(({ kind }) => kind === 'DNSLoadBalancer')
    const holders = claimNames(
      balancers.map((each) => balancerOf(each)),
      BALANCE_DEFAULTS,
    )
    for (const host of HOSTS) {
      const owner = oldestOf(balancers.filter((each) => each.host === host))
      expect([host, holders.get(`${host}.`)]).toEqual([host, owner && `${owner.tenant}/${owner.name}`])
    }
    const reversed = claimNames(
      balancers.toReversed().map((each) => balancerOf(each)),
      BALANCE_DEFAULTS,
    )
    expect(Object.fromEntries(reversed)).toEqual(Object.fromEntries(holders))
  })
})

/** Of a wildcard and a name of the level that it covers. */
function areOverlapping(a: string, b: string): boolean {
  const level = (host: string): string => host.slice(host.indexOf('.'))
  return a !== b && isWildcard(a) !== isWildcard(b) && level(a) === level(b)
}

/** The claims on the hub after every root was decided, again and again in the order of the list, until nothing changes. */
function claimsAfter(roots: readonly Declared[]): Map<string, HostClaim> {
  const claims = new Map<string, HostClaim>()
  let isChanged = true
  while (isChanged) {
    isChanged = false
    for (const root of roots) {
      const { host } = root
      const claimant: Claimant = claimantOf(root)
      const decision = decideClaim({
        host,
        root: claimant,
        claim: claims.get(host),
        overlapping: [...claims.values()].filter(({ spec }) => areOverlapping(spec.host, host)),
        rivals: roots.filter((each) => each.host === host).map((each) => claimantOf(each)),
        managedDomain: '',
        isVerified: undefined,
        findNameFault: () => undefined,
      })
      if (decision.state === 'create') claims.set(host, newClaim(host, claimant))
      if (decision.state === 'join') {
        const { kind, name, uid } = claimant
        const { spec, ...rest } = decision.claim
        claims.set(host, { ...rest, spec: { ...spec, owners: [...spec.owners, { kind, name, uid }] } } as HostClaim)
      }
      isChanged ||= decision.state === 'create' || decision.state === 'join'
    }
  }
  return claims
}

it('fleet: from a cold start the oldest root claims a host, and no namespace one that overlaps', () => {
  holds(({ objects }) => {
    const roots = objects.filter(({ kind }) => kind === 'Root')
    const claims = claimsAfter(roots)
    for (const { spec } of claims.values()) {
      const rivals = roots.filter(({ host }) => host === spec.host)
      // Hosts that a wildcard of another namespace may have are whoever's came first: of them only this is true.
      for (const other of claims.values())
        if (areOverlapping(spec.host, other.spec.host)) expect(other.spec.namespace).toBe(spec.namespace)
      expect([spec.host, spec.namespace]).toEqual([spec.host, oldestOf(rivals)?.tenant])
      for (const { uid } of spec.owners)
        expect(rivals.find((each) => claimantOf(each).uid === uid)?.tenant).toBe(spec.namespace)
    }
    for (const { host } of roots)
      if (!roots.some((other) => areOverlapping(other.host, host))) expect([...claims.keys()]).toContain(host)
  })
})
