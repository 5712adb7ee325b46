/**
 * The controllers of publish: map sources, children and load balancers to keys, and run observe → decide → act for each.
 *
 * One controller per source kind; a kind whose CRD is absent waits for it and blocks no other kind. Children are mapped to
 * their source by `owned-by`, so a child in another namespace is repaired like one in the namespace of the source.
 */
import { type Context, IngressClass, labelsChanged, type Manager, Namespace, Service } from '@seamark/kube'
import { type Immutable, keyOf, type Obj, parseKey } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { hostOf } from '../hosts/load-balancer.ts'
import { namesOf, readsPublishers } from './decide/host-publications.ts'
import { Gateway, GatewayClass, ReferenceGrant } from '@seamark/kube/gateway-api'
import { findOwner } from './decide/child.ts'
import { childKinds } from './child-kinds.ts'
import type { SourceKind } from './options.ts'
import { type PublishShell, reconcile } from './reconciler.ts'
import { sourceKindToken } from './sources/source-reader.ts'
import {
  isAddressChange,
  isBalancedRecordChange,
  isChildChange,
  isHeldDnsChange,
  isPublicationChange,
  isSourceChange,
  keysOfOwner,
  sourcesNaming,
  sourcesWithSameHost,
} from './triggers.ts'

/** Concurrent reconciles; each has one request in flight, and more than 32 do not increase the throughput of a server. */
const CONCURRENCY = 32

export function addPublishControllers(manager: Manager, shell: PublishShell): void {
  for (const kind of shell.options.sources) addController(manager, kind, shell)
}

function newBuilder(manager: Manager, kind: SourceKind) {
  return manager.controller(`publish-${kind.toLowerCase()}`, sourceKindToken(kind), {
    concurrency: CONCURRENCY,
    when: isSourceChange(kind),
  })
}

function addController(manager: Manager, kind: SourceKind, shell: PublishShell): void {
  const { options, decider } = shell
  const token = sourceKindToken(kind)
  const builder = newBuilder(manager, kind)
  for (const child of childKinds(options)) {
    const map = (object: Immutable<Obj>): string[] => keysOfOwner(object, kind)
    builder.watches(child, map, {
      optional: true,
      when(change) {
        const owner = change.type === 'deleted' ? findOwner(change.object) : undefined
        if (owner?.startsWith(`${kind}/`) === true) shell.sourcesWithDeletedChild.add(owner)
        return isChildChange(change)
      },
      // Ten thousand updates of children would cause ten thousand reconciles without a change.
      ignoreOwnWrites: true,
    })
    // Watched separately: `records` of this process writes that status, and own writes are ignored above.
    if (child === DNSEndpoint && options.conditions)
      builder.watches(child, map, { optional: true, when: isHeldDnsChange })
  }
  if (kind === 'HTTPProxy' || kind === 'IngressRoute') {
    for (const { service } of options.services) {
      const { namespace = '', name } = parseKey(service)
      const narrow = options.sources.includes('Service') ? {} : { namespace, fieldSelector: `metadata.name=${name}` }
      const map = (object: Immutable<Service>, cache: Pick<Context, 'list'>): string[] =>
        keyOf(object) === service ? cache.list(token).map(keyOf) : []
      builder.watches(Service, map, { when: isAddressChange, ...narrow })
    }
  }
  if (kind === 'HTTPRoute') {
    builder.watches(Gateway, (_, cache) => cache.list(token).map(keyOf), {
      optional: true,
    })
    // A listener may select namespaces by their labels.
    builder.watches(Namespace, ({ metadata }, cache) => cache.list(token, metadata.name).map(keyOf), {
      when: labelsChanged,
    })
  }
  if (kind === 'Gateway')
    builder.watches(ReferenceGrant, (_, cache) => cache.list(token).map(keyOf), {
      optional: true,
    })
  if (options.arbitrateHosts) {
    for (const other of options.sources) {
      const map = (object: Immutable<Obj>): string[] => sourcesWithSameHost(decider, other, object, kind)
      builder.watches(sourceKindToken(other), map, {
        optional: true,
        when: isSourceChange(other),
      })
    }
  }
  addPublisherWatches(builder, kind, shell)
  if (options.conditions && shell.heldRecords !== undefined) {
    const { heldRecords } = shell
    builder.triggers((mark) => heldRecords.subscribe((object) => mark(keysOfOwner(object, kind))))
  }
  builder.triggers((mark) =>
    shell.secondWriter.subscribe((sources) =>
      mark(sources.flatMap((source) => (source.startsWith(`${kind}/`) ? [source.slice(kind.length + 1)] : []))),
    ),
  )
  builder
    .gone(async (key) => {
      shell.metrics.sourceDecided(kind, key, undefined)
      shell.findingHistory.forget(kind, key)
      shell.sourcesWithDeletedChild.delete(`${kind}/${key}`)
    })
    .reconcile((_, context) => reconcile(kind, token, context, shell))
}

/** What decides whether balance publishes a host of the source. */
function addPublisherWatches(
  builder: ReturnType<typeof newBuilder>,
  kind: SourceKind,
  { options, decider }: PublishShell,
): void {
  if (!readsPublishers(options) || kind === 'Gateway') return
  const optional = { optional: true, skipsDenied: true }
  const all = (_: unknown, cache: Pick<Context, 'list'>): string[] => cache.list(sourceKindToken(kind)).map(keyOf)
  if (kind === 'Ingress') builder.watches(IngressClass, all, optional)
  if (kind === 'HTTPRoute') builder.watches(GatewayClass, all, optional)
  builder
    .watches(DNSLoadBalancer, (object) => sourcesNaming(decider, [hostOf(object)], kind), {
      ...optional,
      when: isPublicationChange(options.parts.balance),
    })
    .watches(DNSEndpoint, (object) => sourcesNaming(decider, namesOf(object), kind), {
      optional: true,
      when: isBalancedRecordChange,
    })
}
