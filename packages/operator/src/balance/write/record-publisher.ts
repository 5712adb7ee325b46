/**
 * Where the controller of load balancers publishes records, and reads back what is published.
 *
 * Two implementations: a DNSEndpoint that the load balancer owns (`seamark run`), which the records capability or
 * ExternalDNS serves; and DNS providers directly (`seamark dnslb`, provider-publisher.ts).
 */
import type { Context, Immutable } from '@seamark/kube'
import { withController } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import type { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import type { Reason } from '../../reasons.ts'
import { isWithin } from '../../rrset/rrset.ts'
import type { BalancedSet } from '../decide/answer-shares.ts'
import type { StoppedWrite } from '../../safety/second-writer-guard.ts'
import type { ProviderFact } from '../decide/finding.ts'
import { type WriteGuard, writeGuarded } from './guarded-write.ts'
import type { BalancerSettings } from '../load-balancer.ts'
import { publishedIn, recordsObject, recordsObjectName } from './records-object.ts'

export interface PublishedFact {
  /** A, AAAA and CNAME sets of the DNS name; undefined when they cannot be read. */
  readonly published: readonly BalancedSet[] | undefined
  readonly provider: ProviderFact
  /**
   * Where the sets were read: at a server that answers for the zone, at the interface of a DNS service, whose servers may not
   * answer it yet, or in an object. @default object
   */
  readonly readFrom?: 'server' | 'service' | 'object'
  /** The name is in a zone of our own DNS server. @default false */
  readonly answersByPolicy?: boolean
}

interface PublishRequest {
  readonly loadBalancer: Immutable<DNSLoadBalancer>
  readonly settings: BalancerSettings
  /** Complete: exactly these sets; empty removes the records of the name. */
  readonly sets: readonly BalancedSet[]
  /** Host names whose addresses are in the sets. */
  readonly cnames: readonly string[]
  /** Why these: reported with records that are deleted. */
  readonly reason: Reason
}

type Desired = ReturnType<typeof recordsObject>

/** The part of a reconcile context that publishers use. */
type PublishContext = Pick<Context, 'get' | 'apply' | 'delete' | 'clock' | 'signal' | 'log'>

export interface RecordPublisher {
  observe(
    loadBalancer: Immutable<DNSLoadBalancer>,
    settings: BalancerSettings,
    context: PublishContext,
  ): Promise<PublishedFact>
  /**
   * Rejects with the error of the API server or the DNS service; with Conflict if the records of the cache no longer exist on the
   * server, as after the deletion of their load balancer. `skipped`: a dry run, nothing was sent; a stopped write: another
   * client undoes it.
   */
  publish(request: PublishRequest, context: PublishContext): Promise<'published' | 'skipped' | StoppedWrite>
  /** The load balancer of this key no longer exists. */
  forget(key: string, context: PublishContext): Promise<void>
  /** False: it is not known yet which providers there are; nothing is decided. @default always true */
  isReady?(): boolean
  /** Calls the listener when load balancers have to be decided again: those of these keys, or all. Returns the unsubscribe function. */
  subscribe?(listener: (keys?: readonly string[]) => void): () => void
}

/**
 * Changes of the DNSEndpoints requeue their load balancers; declared by the controller. `ownZones` are those of our own DNS
 * server, canonical with a trailing dot.
 */
export function dnsEndpointPublisher({
  ownZones = [],
  guard,
}: {
  readonly ownZones?: readonly string[] | undefined
  readonly guard?: WriteGuard | undefined
} = {}): RecordPublisher {
  return {
    async observe(loadBalancer, { recordName }, context) {
      const published = publishedIn(context.get(DNSEndpoint, recordsObjectName(loadBalancer)), loadBalancer)
      if ('foreign' in published)
        return { published: undefined, provider: { state: 'unreadable', error: published.foreign } }
      // Records of an earlier name are no information about this one.
      return {
        published: published.sets.filter(({ name }) => name === recordName),
        provider: { state: 'ready' },
        answersByPolicy: ownZones.some((zone) => isWithin(recordName, zone)),
      }
    },
    async publish({ loadBalancer, sets }, context) {
      const key = recordsObjectName(loadBalancer)
      const live = context.get(DNSEndpoint, key)
      const desired = sets.length > 0 ? withController(recordsObject(loadBalancer, sets), loadBalancer) : undefined
      const write = { kind: DNSEndpoint, key, desired, live, loadBalancer: keyOf(loadBalancer) }
      const stopped = await writeGuarded(guard, write, async () => {
        if (desired !== undefined) await context.apply(DNSEndpoint, withIdentity(desired, live))
        else if (live !== undefined) await context.delete(DNSEndpoint, live)
      })
      return stopped ?? 'published'
    },
    // The garbage collector deletes the DNSEndpoint with its owner.
    forget: async () => undefined,
  }
}

/** An object that exists is changed and never created again: with its UID the server refuses to apply an object that it lacks. */
function withIdentity(desired: Desired, live: Immutable<DNSEndpoint> | undefined): Desired {
  const uid = live?.metadata.uid
  return uid === undefined ? desired : { ...desired, metadata: { ...desired.metadata, uid } }
}
