/**
 * Controller of endpoint sources: annotated Services, Ingresses and Gateways of the source cluster →
 * DNSLoadBalancerEndpoints of the target cluster, which is the manager's own (decide-source.ts).
 *
 * Order of writes: finalizer, endpoints, validity; deletions before the finalizer is removed. A crash in between leaves a
 * state from which the same decision continues.
 *
 * `validUntil` is applied under a field manager of its own: `active` and `healthy` of the same status belong to the controller
 * of load balancers, and one manager would remove what the other leaves out.
 */
import {
  addFinalizer,
  type Context,
  type Immutable,
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
import { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { Gateway } from '@seamark/kube/gateway-api'
import { decideSource, ENDPOINT_FINALIZER, endpointName, SOURCE_ANNOTATION, type SourceFacts } from './decide-source.ts'
import { type BalanceDefaults, readLoadBalancer } from '../load-balancer.ts'
import { type EndpointTarget, type OtherSource, targetOf } from './endpoint-target.ts'
import { RecentEvents } from '../recent.ts'
import { refOf } from '../../hosts/load-balancer.ts'
import type { Source } from './source.ts'

const EVENT_REASON = 'sync'
const VALIDITY_MANAGER = 'seamark-endpoint-validity'
const MIN_REQUEUE_MS = 1_000
/** While nothing may be written, sources are decided again this often, so that the end of a pause is noticed. */
const IDLE_RETRY_MS = 10_000

export interface EndpointSourceOptions {
  readonly defaults: BalanceDefaults
  /** @default all */
  readonly kinds?: readonly Source['kind'][]
  /** Another cluster with the sources, engaged in the manager's fleet. @default the manager's own cluster */
  readonly source?: OtherSource
  /** False: write nothing. @default always true */
  readonly isWriting?: () => boolean
  readonly untilMayWrite?: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
}

export function setUpEndpointSources(mgr: Manager, options: EndpointSourceOptions): void {
  const { source: other } = options
  const target = targetOf(mgr, other)
  const { informers } = other?.cluster ?? mgr.cluster
  const wire = <T extends Obj>(kind: Kind<T>, toSource: (object: Immutable<T>) => Source, optional: boolean) => {
    if (options.kinds?.includes(kind.kind as Source['kind']) === false) return
    const byRef = mgr.index(kind, 'dnsloadbalancer', (object) => {
      const ref = refOf(object)
      return ref === undefined || 'invalid' in ref ? [] : [`${ref.namespace}/${ref.name}`]
    })
    const events = new RecentEvents()
    const builder = mgr
      .controller(`endpoint-${kind.kind.toLowerCase()}`, kind, {
        optional,
        clusters: other === undefined ? 'local' : 'fleet',
        when: (change) => concerns(change.object) || (change.type === 'updated' && concerns(change.old)),
      })
      .gone(async (key) => events.forget(key))
    const keysOf = {
      balancer: (object: Immutable<DNSLoadBalancer>) => informers.by(byRef, keyOf(object)).map(keyOf),
      endpoint: ({ metadata }: Immutable<DNSLoadBalancerEndpoint>) =>
        sourceKeys(metadata.annotations?.[SOURCE_ANNOTATION], kind),
    }
    if (other === undefined)
      builder.watches(DNSLoadBalancer, keysOf.balancer).watches(DNSLoadBalancerEndpoint, keysOf.endpoint)
    else
      builder.triggers((enqueue) => {
        const unsubscribes = [
          target.balancers().subscribe(({ object }) => enqueue(keysOf.balancer(object))),
          target.endpoints().subscribe(({ object }) => enqueue(keysOf.endpoint(object))),
        ]
        return () => {
          for (const unsubscribe of unsubscribes) unsubscribe()
        }
      })
    builder.reconcile((object, ctx) =>
      reconcile({ kind, object, source: toSource(object), target, options, events }, ctx),
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
  readonly target: EndpointTarget
  readonly options: EndpointSourceOptions
  readonly events: RecentEvents
}

async function reconcile<T extends Obj>(work: Work<T>, ctx: Context): Promise<Next> {
  const { kind, object, events, options } = work
  if (!concerns(object)) return
  await options.untilMayWrite?.(ctx)
  // An unread cluster is not an empty one: nothing is decided, and a finalizer stays.
  if (!work.target.isReadable()) return requeue(MIN_REQUEUE_MS)
  const writer = work.target.writer(ctx)
  const facts = observe(work, ctx)
  const decision = decideSource(facts)
  if (!(options.isWriting?.() ?? true)) return requeue(IDLE_RETRY_MS)
  if (decision.finalizer === 'add') await addFinalizer(ctx.client, kind, object, ENDPOINT_FINALIZER)
  for (const { status: _, ...intent } of decision.writes) await writer.apply(DNSLoadBalancerEndpoint, intent)
  for (const { metadata, status = {} } of decision.renewals) {
    const { namespace = '', name = '' } = metadata
    const intent = { metadata: { namespace, name }, status } as DNSLoadBalancerEndpoint
    const how = { subresource: 'status', fieldManager: VALIDITY_MANAGER } as const
    await writer.client.apply(DNSLoadBalancerEndpoint, intent, how)
  }
  for (const { key } of decision.deletions) {
    const endpoint = facts.existing.find((each) => keyOf(each) === key)
    if (endpoint !== undefined) await writer.delete(DNSLoadBalancerEndpoint, endpoint)
  }
  if (decision.finalizer === 'remove') await removeFinalizer(ctx.client, kind, object, ENDPOINT_FINALIZER)
  for (const { type, message } of decision.events)
    if (events.isNew(ctx.key, message)) ctx.event(object, type, EVENT_REASON, message)
  if (decision.againAfterMs !== undefined) return requeue(Math.max(MIN_REQUEUE_MS, decision.againAfterMs))
}

function observe<T extends Obj>({ object, source, target, options }: Work<T>, ctx: Context): SourceFacts {
  const ref = refOf(object)
  const isRef = ref !== undefined && !('invalid' in ref)
  const loadBalancer = isRef ? target.reader.get(DNSLoadBalancer, `${ref.namespace}/${ref.name}`) : undefined
  const read = loadBalancer === undefined ? undefined : readLoadBalancer(loadBalancer, options.defaults)
  const marked = target.reader.by(target.byMark, `${source.kind}:${ctx.key}`)
  // Unmarked ones of the original, or one of another source, under the name that this source would use.
  const namespace = isRef ? ref.namespace : (object.metadata.namespace ?? '')
  const named = target.reader.get(
    DNSLoadBalancerEndpoint,
    `${namespace}/${endpointName(source, target.sourceCluster, namespace)}`,
  )
  const found = read === undefined ? 'missing' : 'invalid' in read ? 'invalid' : read.settings
  return {
    nowMs: ctx.clock.now(),
    cluster: target.sourceCluster,
    source,
    loadBalancer: found,
    existing: named === undefined || marked.some((each) => keyOf(each) === keyOf(named)) ? marked : [...marked, named],
  }
}
