/**
 * What the syncers report about leaves, by key of the LeafIngress: only what cannot be observed in the caches of a member,
 * such as a refused apply. In memory: after a restart the syncers find it out again.
 */
import type { SyncResult } from '../decide/sync.ts'

export class SyncResults {
  readonly #results = new Map<string, SyncResult>()
  onChange: (leaf: string) => void = () => undefined

  get(leaf: string): SyncResult | undefined {
    return this.#results.get(leaf)
  }

  /** Undefined: nothing to report. */
  set(leaf: string, result: SyncResult | undefined): void {
    const before = this.#results.get(leaf)
    if (before?.reason === result?.reason && before?.message === result?.message && before?.isGone === result?.isGone)
      return
    if (result === undefined) this.#results.delete(leaf)
    else this.#results.set(leaf, result)
    this.onChange(leaf)
  }
}
