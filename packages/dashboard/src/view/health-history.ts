/** How the health of each target changed since this process runs. In memory. */
import { findCondition, type Immutable, type Informers } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSLoadBalancerEndpoint } from '@seamark/operator'
import { type HealthChange, MAX_HEALTH_CHANGES } from '../api/host-page.ts'

export class HealthHistory {
  readonly #changes = new Map<string, HealthChange[]>()

  /** Watches until the returned function is called. */
  start(informers: Pick<Informers, 'informer'>, now: () => number): () => void {
    return informers.informer(DNSLoadBalancerEndpoint).subscribe((change) => {
      if (change.type === 'deleted') this.#changes.delete(keyOf(change.object))
      else this.#note(change.object, now())
    })
  }

  of(key: string): readonly HealthChange[] {
    return this.#changes.get(key) ?? []
  }

  #note(endpoint: Immutable<DNSLoadBalancerEndpoint>, nowMs: number): void {
    const { healthy, conditions } = endpoint.status ?? {}
    const health = healthy === undefined ? 'unknown' : healthy ? 'healthy' : 'unhealthy'
    const key = keyOf(endpoint)
    const known = this.#changes.get(key) ?? []
    if (known.at(-1)?.health === health) return
    const dated = findCondition(conditions, 'Healthy')?.lastTransitionTime
    known.push({
      at: health === 'unknown' ? new Date(nowMs).toISOString() : (dated ?? new Date(nowMs).toISOString()),
      health,
    })
    this.#changes.set(key, known.slice(-MAX_HEALTH_CHANGES))
  }
}
