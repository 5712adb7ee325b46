/** Objects that may be left on a member which could not be reached when their leaf was given up. Pure. */
import type { Immutable } from '@seamark/kube/object'
import type { Cluster } from '../../api/cluster.ts'
import type { LeafIngress } from '../../api/leaf-ingress.ts'

export type Orphan = NonNullable<NonNullable<Cluster['status']>['orphans']>[number]

/**
 * The known ones with the objects of a leaf. One that is known stays as it is: a leaf may be given up again, after a crash or
 * while the cache is behind.
 */
export function addOrphans(
  known: Immutable<Orphan[]>,
  { spec, metadata }: Pick<Immutable<LeafIngress>, 'spec' | 'metadata'>,
  since: string,
): Immutable<Orphan>[] {
  const idOf = ({ kind, namespace, name }: Immutable<Orphan>): string => `${kind} ${namespace}/${name}`
  const ids = new Set(known.map(idOf))
  const added = spec.manifests.map((each) => ({
    kind: each.kind,
    namespace: metadata.namespace ?? '',
    name: String(each.metadata['name']),
    since,
  }))
  return [...known, ...added.filter((orphan) => !ids.has(idOf(orphan)))]
}
