/**
 * Detects when the owner of a host releases it, by deletion or by naming another host, so that the time of the release is
 * known to the next claimant. Runs inside the watch, before any reconcile of the same change.
 */
import { compareAge } from '@seamark/dialects'
import type { Change, Clock, Informer } from '@seamark/kube'
import type { Immutable, Obj } from '@seamark/kube/object'
import type { SourceDecider } from './source-decision.ts'
import type { SourceKind } from '../options.ts'

export function watchReleases(
  informer: Informer<Obj>,
  kind: SourceKind,
  decider: SourceDecider,
  clock: Clock,
): () => void {
  return informer.subscribe((change: Change<Obj>) => {
    if (change.type === 'added') return
    const last = change.type === 'deleted' ? change.object : change.old
    const before = decider.sources.read(kind, last)
    const kept = change.type === 'deleted' ? [] : hostsOf(decider, kind, change.object)
    for (const host of before.hosts) {
      if (kept.includes(host)) continue
      const rivals = decider.sources.claimants(host).filter((rival) => rival.uid !== before.uid)
      const wasOwner = rivals.every((rival) => compareAge(before, rival) < 0)
      if (wasOwner && (rivals.length > 0 || decider.isBalanced(host)))
        decider.release(host, { source: before, object: last, atMs: clock.monotonic() })
    }
  })
}

function hostsOf(decider: SourceDecider, kind: SourceKind, object: Immutable<Obj>): readonly string[] {
  return object.metadata.deletionTimestamp === undefined ? decider.sources.read(kind, object).hosts : []
}
