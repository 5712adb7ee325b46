/** The records of a zone and whose they are. Pure. */
import { isMarkerName, ownershipOf, type Owner, type ZoneView } from '@seamark/operator'
import { POLICY_TYPE } from '@seamark/dns'
import type { RecordView } from '../api/plan-page.ts'
import { textOf } from './own-zones.ts'

export interface RecordFacts {
  readonly owner: Owner
  /** UID → `DNSEndpoint shop/web` */
  readonly endpoints: ReadonlyMap<string, string>
  /** The host page that shows a name. */
  readonly hostOf: (name: string) => string | undefined
}

/** Without markers and answer policies, which are not answered to clients. */
export function recordViews(view: ZoneView, { owner, endpoints, hostOf }: RecordFacts): RecordView[] {
  return view.sets
    .filter(({ name, type }) => !isMarkerName(name) && type !== `TYPE${POLICY_TYPE}`)
    .map(({ name, type, ttl, values }): RecordView => {
      const found = ownershipOf(view, name, type, owner)
      const [other] =
        view.marked(name, type)?.readings.flatMap((each) => (each.kind === 'marker' ? [each.marker] : [])) ?? []
      const source = found.kind === 'ours' ? endpoints.get(found.mine.marker.source) : undefined
      const host = hostOf(textOf(name))
      const shownOwner = found.kind === 'ours' ? found.mine.marker.owner : other?.owner
      return {
        zone: textOf(view.origin),
        name: textOf(name),
        type,
        ttl,
        values,
        ownership: found.kind === 'ours' ? 'ours' : other === undefined ? 'none' : 'other',
        ...(shownOwner !== undefined && { owner: shownOwner }),
        ...(source !== undefined && { source }),
        ...(host !== undefined && { host }),
      }
    })
    .toSorted((a, b) => (a.name === b.name ? (a.type < b.type ? -1 : 1) : a.name < b.name ? -1 : 1))
}
