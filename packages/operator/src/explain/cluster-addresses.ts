/** Which cluster an address is of: that of the leaves which report it. */
import type { Immutable } from '@seamark/kube/object'
import type { LeafIngress } from '../api/leaf-ingress.ts'

export class ClusterAddresses {
  /** Address → cluster → how many leaves report it. */
  readonly #known = new Map<string, Map<string, number>>()

  /** Undefined: of none, or of several. */
  clusterOf(address: string): string | undefined {
    const clusters = this.#known.get(address)
    return clusters?.size === 1 ? clusters.keys().next().value : undefined
  }

  /** Whether another address is known to be of a cluster now, or one is not any more. */
  replace(before: Immutable<LeafIngress> | undefined, after: Immutable<LeafIngress> | undefined): boolean {
    const addresses = [before, after].flatMap((leaf) => (leaf?.status?.addresses ?? []).map(({ value }) => value))
    const clusters = (): string => addresses.map((address) => this.clusterOf(address) ?? '').join(' ')
    const was = clusters()
    if (before !== undefined) this.#count(before, -1)
    if (after !== undefined) this.#count(after, 1)
    return clusters() !== was
  }

  #count({ spec, status }: Immutable<LeafIngress>, by: 1 | -1): void {
    for (const { value } of status?.addresses ?? []) {
      const clusters = this.#known.get(value) ?? new Map<string, number>()
      const count = (clusters.get(spec.cluster) ?? 0) + by
      if (count > 0) clusters.set(spec.cluster, count)
      else clusters.delete(spec.cluster)
      if (clusters.size > 0) this.#known.set(value, clusters)
      else this.#known.delete(value)
    }
  }
}
