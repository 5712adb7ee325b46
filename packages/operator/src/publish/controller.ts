/**
 * The shell of publish: wires sources, children and load balancers to keys, and runs observe → decide → act for each.
 *
 * One controller per source kind; a kind whose CRD is absent waits for it and blocks nobody. Children are found by their
 * `owned-by`, so one in another namespace is repaired like one at home.
 */
import { type Context, labelsChanged, type Manager, Namespace, Service } from '@seamark/kube'
import { type Immutable, keyOf, type Obj, parseKey } from '@seamark/kube/object'
import { Gateway, ReferenceGrant } from '../api/gateway.ts'
import { findOwner } from './decide/child.ts'
import { childKinds } from './child-kinds.ts'
import type { SourceKind } from './options.ts'
import { type PublishShell, reconcile } from './reconciler.ts'
import { sourceKindToken } from './sources/source-reader.ts'
import { isAddressChange, isChildChange, isSourceChange, keysOfOwner, rivalsOf } from './triggers.ts'
import { informerOptions } from './watches.ts'

/** Reconciles at once; each has one request in flight, and a server gains nothing from more than 32. */
const CONCURRENCY = 32

export function addPublishControllers(manager: Manager, shell: PublishShell): void {
  for (const kind of shell.options.sources) addController(manager, kind, shell)
}

function addController(manager: Manager, kind: SourceKind, shell: PublishShell): void {
  const { options, decider } = shell
  const token = sourceKindToken(kind)
  const own = informerOptions(token, options)
  const builder = manager.controller(`publish-${kind.toLowerCase()}`, token, {
    concurrency: CONCURRENCY,
    when: isSourceChange(kind),
    ...own,
  })
  for (const child of childKinds(options)) {
    const map = (object: Immutable<Obj>): string[] => keysOfOwner(object, kind)
    builder.watches(child, map, {
      optional: true,
      when(change) {
        const owner = change.type === 'deleted' ? findOwner(change.object) : undefined
        if (owner?.startsWith(`${kind}/`) === true) shell.sourcesWithDeletedChild.add(owner)
        return isChildChange(change)
      },
      // Ten thousand updates of children would cause ten thousand reconciles that find nothing to do.
      ignoreOwnWrites: true,
      ...informerOptions(child, options),
    })
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
      ...informerOptions(Gateway, options),
    })
    // A listener may admit namespaces by their labels.
    builder.watches(Namespace, ({ metadata }, cache) => cache.list(token, metadata.name).map(keyOf), {
      when: labelsChanged,
      projection: 'metadata',
    })
  }
  if (kind === 'Gateway')
    builder.watches(ReferenceGrant, (_, cache) => cache.list(token).map(keyOf), {
      optional: true,
      ...informerOptions(ReferenceGrant, options),
    })
  if (options.arbitrateHosts) {
    for (const other of options.sources) {
      const map = (object: Immutable<Obj>): string[] => rivalsOf(decider, other, object, kind)
      builder.watches(sourceKindToken(other), map, {
        optional: true,
        when: isSourceChange(other),
        ...informerOptions(sourceKindToken(other), options),
      })
    }
  }
  builder
    .gone(async (key) => {
      shell.metrics.sourceDecided(kind, key, undefined)
      shell.findingHistory.forget(`${kind}/${key}`)
      shell.sourcesWithDeletedChild.delete(`${kind}/${key}`)
    })
    .reconcile((_, context) => reconcile(kind, token, context, shell))
}
