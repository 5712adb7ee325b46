/** What draining a cluster does to the roots that have a leaf on it, for `seamark drain`. */
import type { Client } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { GlobalIngress } from '../api/global-ingress.ts'
import { LeafIngress } from '../api/leaf-ingress.ts'
import { ROOT_UID_LABEL } from '../hosts/root.ts'

export interface DrainPreview {
  /** Roots with a leaf on the cluster, and where their traffic goes. */
  readonly moves: readonly {
    readonly root: string
    readonly hosts: readonly string[]
    /** Clusters that serve it. */
    readonly to: readonly string[]
    /** Clusters of which one gets a leaf when no other serves. */
    readonly spares: readonly string[]
  }[]
  /** Roots that no other cluster serves or could serve. */
  readonly dark: readonly string[]
}

/** What draining a cluster does, from the stored state. */
export async function previewDrain(client: Client, cluster: string, signal?: AbortSignal): Promise<DrainPreview> {
  const [globals, leaves] = await Promise.all([
    client.list(GlobalIngress, { signal }),
    client.list(LeafIngress, { signal }),
  ])
  const moves: { root: string; hosts: string[]; to: string[]; spares: string[] }[] = []
  for (const global of globals.items) {
    const own = leaves.items.filter(({ metadata }) => metadata.labels?.[ROOT_UID_LABEL] === global.spec.rootRef.uid)
    if (!own.some(({ spec }) => spec.cluster === cluster)) continue
    const to = own
      .filter(
        ({ spec, status }) => spec.cluster !== cluster && status?.phase === 'Active' && spec.lifecycle === 'Active',
      )
      .map(({ spec }) => spec.cluster)
    moves.push({
      root: keyOf({ metadata: { ...global.metadata, name: global.spec.rootRef.name } }),
      hosts: global.spec.hosts.map(({ host }) => host),
      to: to.sort(),
      spares: (global.status?.spareClusters ?? []).filter((name) => name !== cluster),
    })
  }
  const dark = moves.filter(({ to, spares }) => to.length === 0 && spares.length === 0)
  return { moves, dark: dark.map(({ root }) => root) }
}
