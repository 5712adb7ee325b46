/**
 * Who publishes the DNS of a host: publish, or balance. Pure; docs/balance.md, "Who publishes what", is its table.
 *
 * Guarantees:
 * - One of them, never both: balance for a host that a load balancer has, and for a root wherever fleet and balance run.
 * - A load balancer of another namespace takes no host from an older source (INV-14).
 * - What is not known yet is not published anew: of a root, addresses that no probe has confirmed.
 */
import { type Aged, compareAge } from '@seamark/dialects'

/** The capabilities of this process that decide about roots. */
export interface ProcessParts {
  /** `dns`: it writes a DNSLoadBalancer for each host. Undefined: no fleet in this process. */
  readonly fleet: { readonly dns: boolean } | undefined
  readonly balance: boolean
}

/** `publish.roots`. */
export type RootsSetting = 'auto' | 'always' | 'never'

/**
 * Whether publish publishes a host of a root that no load balancer has. A process without the fleet cannot know: what it
 * published stays, and nothing is added.
 */
export function publishesRoots(setting: RootsSetting, { fleet, balance }: ProcessParts): boolean {
  switch (setting) {
    case 'always':
      return true
    case 'never':
      return false
    case 'auto':
      return fleet !== undefined && !(fleet.dns && balance)
  }
}

/** A load balancer that names the host, may use it, and has a controller that publishes it. */
export interface HostBalancer {
  readonly age: Aged
  /** The source refers to it, by its annotation or as the root for which it was generated. */
  readonly isOfSource: boolean
}

export interface SourceFacts {
  readonly source: Aged
  readonly isRoot: boolean
  readonly publishesRoots: boolean
}

export interface HostFacts extends SourceFacts {
  readonly balancers: readonly HostBalancer[]
}

export type HostPublisher =
  /** `rival`: a load balancer of another namespace names the host, too. */
  | { readonly by: 'publish'; readonly rival?: HostBalancer }
  /** `holder` undefined: the load balancer of a root that is not written yet. */
  | { readonly by: 'balance'; readonly holder: HostBalancer | undefined; readonly isConflict: boolean }

export function publisherOf({ balancers, ...facts }: HostFacts): HostPublisher {
  const oldestFirst = balancers.toSorted((a, b) => compareAge(a.age, b.age))
  const holder = oldestFirst.find((balancer) => isOfOne(balancer, facts) || isOlder(balancer, facts))
  if (holder !== undefined) return { by: 'balance', holder, isConflict: !isOfOne(holder, facts) }
  if (isBalanced(facts)) return { by: 'balance', holder, isConflict: false }
  const [rival] = oldestFirst
  return { by: 'publish', ...(rival !== undefined && { rival }) }
}

/**
 * Whether publish lets a load balancer publish the host of the source; balance asks it of the oldest source of its host. The host
 * of a root that balance publishes is not publish's to keep: its HostClaim does (claimed-hosts.ts).
 */
export function mayTake(balancer: HostBalancer, facts: SourceFacts): boolean {
  return isBalanced(facts) || isOfOne(balancer, facts) || isOlder(balancer, facts)
}

function isOlder({ age }: HostBalancer, { source }: SourceFacts): boolean {
  return compareAge(age, source) < 0
}

function isOfOne({ isOfSource, age }: HostBalancer, { source }: SourceFacts): boolean {
  return isOfSource || age.namespace === source.namespace
}

function isBalanced({ isRoot, publishesRoots }: SourceFacts): boolean {
  return isRoot && !publishesRoots
}
