/**
 * Controller of endpoint sources: annotated Services, Ingresses and Gateways → DNSLoadBalancerEndpoints (decide-source.ts).
 * Sources and load balancers are in one cluster here.
 *
 * Order of writes: finalizer, endpoints, validity; deletions before the finalizer is removed. A crash in between leaves a
 * state from which the same decision goes on.
 *
 * `validUntil` is applied under a field manager of its own: `active` and `healthy` of the same status belong to the controller
 * of load balancers, and one manager would remove what the other leaves out.
 */
import {
  addFinalizer,
  type Context,
  type Immutable,
  type Index,
  Ingress,
  type Kind,
  type Manager,
  type Next,
  type Obj,
  removeFinalizer,
  requeue,
  Service,
} from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { Gateway } from '@seamark/kube/gateway-api'
import { decideSource, ENDPOINT_FINALIZER, endpointName, SOURCE_ANNOTATION, type SourceFacts } from './decide-source.ts'
import { type BalanceDefaults, readLoadBalancer } from './load-balancer.ts'
import { refOf, type Source } from './source.ts'

const EVENT_REASON = 'sync'
const VALIDITY_MANAGER = 'seamark-endpoint-validity'
const MIN_REQUEUE_MS = 1_000

export function setUpEndpointSources(mgr: Manager, defaults: BalanceDefaults): void {
  const byMark = mgr.index(DNSLoadBalancerEndpoint, 'source', ({ metadata }) =>
    [metadata.annotations?.[SOURCE_ANNOTATION]].filter((mark) => mark !== undefined),
  )
  const wire = <T extends Obj>(kind: Kind<T>, toSource: (object: Immutable<T>) => Source, optional: boolean) => {
    const byRef = mgr.index(kind, 'dnsloadbalancer', (object) => {
      const ref = refOf(object)
      return ref === undefined || 'invalid' in ref ? [] : [`${ref.namespace}/${ref.name}`]
    })
    const lastEvents = new Map<string, string>()
    mgr
      .controller(`endpoint-${kind.kind.toLowerCase()}`, kind, {
        optional,
        when: (change) => concerns(change.object) || (change.type === 'updated' && concerns(change.old)),
      })
      .watches(DNSLoadBalancer, (object, cache) => cache.by(byRef, keyOf(object)).map(keyOf))
      .watches(DNSLoadBalancerEndpoint, ({ metadata }) => sourceKeys(metadata.annotations?.[SOURCE_ANNOTATION], kind))
      .gone(async (key) => void lastEvents.delete(key))
      .reconcile((object, ctx) =>
        reconcile({ kind, object, source: toSource(object), byMark, defaults, lastEvents }, ctx),
      )
  }
  wire(Service, (object) => ({ kind: 'Service', object }), false)
  wire(Ingress, (object) => ({ kind: 'Ingress', object }), false)
  wire(Gateway, (object) => ({ kind: 'Gateway', object }), true)
}

/** Most Services have neither annotation nor finalizer. */
function concerns(object: Immutable<Obj>): boolean {
  return refOf(object) !== undefined || object.metadata.finalizers?.includes(ENDPOINT_FINALIZER) === true
}

/** `Service:ns/name` → `ns/name`, if it is of the kind. */
function sourceKeys(mark: string | undefined, kind: Kind): string[] {
  const prefix = `${kind.kind}:`
  return mark?.startsWith(prefix) === true ? [mark.slice(prefix.length)] : []
}

interface Work<T extends Obj> {
  readonly kind: Kind<T>
  readonly object: Immutable<T>
  readonly source: Source
  readonly byMark: Index<DNSLoadBalancerEndpoint>
  readonly defaults: BalanceDefaults
  /** An Event equal to the last one of its object is not repeated. */
  readonly lastEvents: Map<string, string>
}

async function reconcile<T extends Obj>(work: Work<T>, ctx: Context): Promise<Next> {
  const { kind, object, lastEvents } = work
  if (!concerns(object)) return
  const facts = observe(work, ctx)
  const decision = decideSource(facts)
  if (decision.finalizer === 'add') await addFinalizer(ctx.client, kind, object, ENDPOINT_FINALIZER)
  for (const { status: _, ...intent } of decision.writes) await ctx.apply(DNSLoadBalancerEndpoint, intent)
  for (const { metadata, status = {} } of decision.renewals) {
    const { namespace = '', name = '' } = metadata
    const intent = { metadata: { namespace, name }, status } as DNSLoadBalancerEndpoint
    await ctx.client.apply(DNSLoadBalancerEndpoint, intent, { subresource: 'status', fieldManager: VALIDITY_MANAGER })
  }
  for (const { key } of decision.deletions) {
    const endpoint = facts.existing.find((each) => keyOf(each) === key)
    if (endpoint !== undefined) await ctx.delete(DNSLoadBalancerEndpoint, endpoint)
  }
  if (decision.finalizer === 'remove') await removeFinalizer(ctx.client, kind, object, ENDPOINT_FINALIZER)
  for (const { type, message } of decision.events) {
    if (lastEvents.get(ctx.key) === message) continue
    lastEvents.set(ctx.key, message)
    ctx.event(object, type, EVENT_REASON, message)
  }
  if (decision.againAfterMs !== undefined) return requeue(Math.max(MIN_REQUEUE_MS, decision.againAfterMs))
}

function observe<T extends Obj>({ object, source, byMark, defaults }: Work<T>, ctx: Context): SourceFacts {
  const ref = refOf(object)
  const isRef = ref !== undefined && !('invalid' in ref)
  const loadBalancer = isRef ? ctx.get(DNSLoadBalancer, `${ref.namespace}/${ref.name}`) : undefined
  const read = loadBalancer === undefined ? undefined : readLoadBalancer(loadBalancer, defaults)
  const marked = ctx.by(byMark, `${source.kind}:${ctx.key}`)
  // Unmarked ones of the original, or one of somebody else, under the name that this source would use.
  const namespace = isRef ? ref.namespace : (object.metadata.namespace ?? '')
  const named = ctx.get(DNSLoadBalancerEndpoint, `${namespace}/${endpointName(source, '', namespace)}`)
  return {
    nowMs: ctx.clock.now(),
    cluster: '',
    source,
    loadBalancer: read === undefined ? 'missing' : 'invalid' in read ? 'invalid' : read.settings,
    existing: named === undefined || marked.some((each) => keyOf(each) === keyOf(named)) ? marked : [...marked, named],
  }
}
