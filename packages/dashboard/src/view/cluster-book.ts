/** What all hosts together show about each cluster, kept up to date host by host. */
import type { CachedHost } from '@seamark/operator'
import { LEAF_CLUSTER_LABEL } from '@seamark/operator'
import type { HostView } from '../api/state.ts'
import type { ClusterTotals } from './cluster-view.ts'

interface Entry extends ClusterTotals {
  shares: number
  hosts: number
  answeredHosts: number
  answeredRoots: number
  healthy: number
  unhealthy: number
  readonly addresses: Map<string, number>
}

/** Of one host to one cluster. */
interface Part {
  readonly isOfRoot: boolean
  share: number
  healthy: number
  unhealthy: number
  readonly addresses: string[]
}

const NOTHING: ClusterTotals = {
  shares: 0,
  hosts: 0,
  answeredHosts: 0,
  answeredRoots: 0,
  healthy: 0,
  unhealthy: 0,
  addresses: new Map(),
}

export class ClusterBook {
  readonly #parts = new Map<string, ReadonlyMap<string, Part>>()
  readonly #entries = new Map<string, Entry>()
  readonly #answered = new Set<string>()

  /** Hosts that are answered at all. */
  get answeredHosts(): number {
    return this.#answered.size
  }

  of(cluster: string): ClusterTotals {
    return this.#entries.get(cluster) ?? NOTHING
  }

  /** Returns the clusters whose totals may differ. `host` undefined: it is gone. */
  set(name: string, host: { readonly cached: CachedHost; readonly view: HostView } | undefined): Set<string> {
    const isAnswered = host?.view.answers.some(({ share }) => share > 0) === true
    return this.#put(name, host === undefined ? undefined : partsOf(host), isAnswered)
  }

  /** The same of some hosts only. */
  narrowed(isSeen: (name: string) => boolean): ClusterBook {
    const book = new ClusterBook()
    for (const [name, parts] of this.#parts) if (isSeen(name)) book.#put(name, parts, this.#answered.has(name))
    return book
  }

  #put(name: string, after: ReadonlyMap<string, Part> | undefined, isAnswered: boolean): Set<string> {
    const before = this.#parts.get(name)
    for (const [cluster, part] of before ?? []) this.#add(cluster, part, -1)
    for (const [cluster, part] of after ?? []) this.#add(cluster, part, 1)
    if (after === undefined || after.size === 0) this.#parts.delete(name)
    else this.#parts.set(name, after)
    if (isAnswered) this.#answered.add(name)
    else this.#answered.delete(name)
    return new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])])
  }

  #add(cluster: string, part: Part, by: 1 | -1): void {
    const entry = this.#entries.get(cluster) ?? { ...NOTHING, addresses: new Map<string, number>() }
    this.#entries.set(cluster, entry)
    entry.shares += by * part.share
    entry.hosts += by
    entry.answeredHosts += part.share > 0 ? by : 0
    entry.answeredRoots += part.isOfRoot && part.share > 0 ? by : 0
    entry.healthy += by * part.healthy
    entry.unhealthy += by * part.unhealthy
    for (const address of part.addresses) {
      const count = (entry.addresses.get(address) ?? 0) + by
      if (count > 0) entry.addresses.set(address, count)
      else entry.addresses.delete(address)
    }
    // Sums of fractions never come back to 0 exactly.
    if (entry.hosts === 0) this.#entries.delete(cluster)
  }
}

function partsOf({ cached, view }: { readonly cached: CachedHost; readonly view: HostView }): Map<string, Part> {
  const parts = new Map<string, Part>()
  const partOf = (cluster: string): Part => {
    const part = parts.get(cluster) ?? {
      isOfRoot: cached.by === 'fleet',
      share: 0,
      healthy: 0,
      unhealthy: 0,
      addresses: [],
    }
    parts.set(cluster, part)
    return part
  }
  for (const { spec } of cached.leaves) partOf(spec.cluster)
  for (const { cluster, share, address } of view.answers) {
    if (cluster === undefined) continue
    const part = partOf(cluster)
    part.share += share
    part.addresses.push(address)
  }
  for (const { metadata, status } of cached.endpoints) {
    const cluster = metadata.labels?.[LEAF_CLUSTER_LABEL]
    if (cluster === undefined || status?.healthy === undefined) continue
    if (status.healthy) partOf(cluster).healthy++
    else partOf(cluster).unhealthy++
  }
  return parts
}
