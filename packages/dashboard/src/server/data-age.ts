/** How old what is shown is: from the watches of the hub. */
import type { Informers } from '@seamark/kube'
import type { DataAge } from '../api/state.ts'

/** A refusal is not an outage: what may be read is current. */
export function dataAge(informers: Pick<Informers, 'all'>): () => DataAge {
  return () => {
    const failures = informers.all().flatMap(({ failure }) => {
      return failure === undefined || failure.reason === 'denied' || failure.reason === 'over-limit' ? [] : [failure]
    })
    const [first] = failures.toSorted((a, b) => a.sinceMs - b.sinceMs)
    if (first === undefined) return { isCurrent: true, readAt: new Date().toISOString() }
    return { isCurrent: false, readAt: new Date(first.sinceMs).toISOString(), message: first.message }
  }
}
