/**
 * A plan: the changes to one zone and the refused changes, each with its reason; and what it is computed from (plan-zone.ts).
 */
import type { Aged } from '@seamark/dialects'
import type { Reason } from '../../reasons.ts'
import type { GuardState } from '../state/guard-state.ts'
import type { Limits } from './limits.ts'
import type { Owner } from './ownership.ts'
import { digestOf, type RRset } from '../../rrset/rrset.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import type { ZoneView } from './zone-view.ts'

export interface RecordSource {
  readonly uid: string
  /** As it is shown: `DNSEndpoint web/shop`. */
  readonly label: string
  /** The tenant: a name belongs to one namespace only. */
  readonly namespace?: string
  /** Changes when the object's specification changes (its generation), not when a status does. */
  readonly revision?: string
  /**
   * The revision that was last completely in place, from the status of the object. Unlike an unsigned marker, it cannot be
   * changed by someone who can only write to the zone.
   */
  readonly placedRevision?: string
  /** Of two sources that request one name, the older one owns it. */
  readonly age: Aged
}

export interface Policy {
  /** INV-7: the exact old values, `external-dns/OWNER` or `dnslb/IDENTITY`, that may be adopted. */
  readonly adopt?: string
  /** Several owners each add their values to the set. */
  readonly isShared?: boolean
  /** Delete the set when no target is left, instead of keeping the last one. */
  readonly removeWhenEmpty?: boolean
  /** A change at the apex, of a wildcard or of a delegation is approved. */
  readonly isApproved?: boolean
  /** The values follow health checks: a change of target does not indicate a faulty source. */
  readonly isHealthDriven?: boolean
  /** The records of a load balancer: a name of its namespace passes to it from another source without a grace period. */
  readonly isOfLoadBalancer?: boolean
  /** The source requests an adoption or an approval, and its namespace is not trusted. */
  readonly isUntrusted?: boolean
}

export interface Desired {
  /** Canonical; an empty list of values means: desired, but no target is known. */
  readonly set: RRset
  readonly source: RecordSource
  readonly policy?: Policy
}

/** A desired RRset that is invalid or not permitted; what is published under its name stays. */
export interface Unusable {
  readonly name: string
  readonly type: string
  readonly source: RecordSource
  readonly code: Reason
  readonly message: string
}

/** Sources by UID. */
export type Sources = Pick<ReadonlySet<string>, 'has'>

export interface SourceView {
  /** Sources that exist and were read completely: records that they no longer request may be deleted. */
  readonly present: Sources
  /** Sources whose absence was confirmed by a live read. A source in neither set is unknown, and its records stay. */
  readonly gone: Sources
  /** Sources that are gone with their kind, which was installed again: until when they may be restored, ms since the epoch. */
  readonly restorable?: ReadonlyMap<string, number>
  /** Sources that request any record. @default those of the desired RRsets, when the plan covers the whole zone */
  readonly requesting?: Sources
  /** Sources whose records stay as they are: they request more than is served. */
  readonly overLimit?: Sources
  /** Namespaces of sources that are known, also of those that are gone. */
  readonly namespaces?: Pick<ReadonlyMap<string, string>, 'get'>
}

export interface ZoneId {
  /** Name of the configured provider. */
  readonly provider: string
  /** Canonical name of the zone. */
  readonly zone: string
}

export interface PlanInput extends ZoneId {
  readonly owner: Owner
  readonly view: ZoneView
  /** Names that this plan covers. */
  readonly scope: 'all' | ReadonlySet<string>
  readonly desired: readonly Desired[]
  readonly unusable?: readonly Unusable[]
  /** The oldest source that requests a name, with any type. @default computed from the desired RRsets of this plan */
  readonly claimant?: (name: string) => RecordSource | undefined
  readonly sources: SourceView
  readonly state: GuardState
  readonly limits: Limits
  /** Create, update and delete in one transaction; without it a change of type is refused. */
  readonly isAtomic: boolean
  readonly types: readonly string[]
  readonly mode: 'enforce' | 'observe'
  readonly isPaused: boolean
  /** Ids of held sets that are approved for this plan only, in addition to the approvals in the state. */
  readonly approved?: ReadonlySet<string>
  readonly number: number
  /** ms since the epoch. */
  readonly now: number
}

export type Op = 'create' | 'update' | 'delete'
export type Risk = 'low' | 'medium' | 'high'

export interface Change extends SetChange {
  readonly op: Op
  readonly name: string
  readonly type: string
  /** Sets that are written in the same batch: markers, registry entries. */
  readonly markers: readonly SetChange[]
  readonly reason: Reason
  readonly message: string
  readonly owner: string
  readonly source: string
  readonly risk: Risk
  /** Seconds for which a resolver may continue to return the old answer. */
  readonly ttlEffect: number
  /** Changes of one group are sent together or not at all. */
  readonly group: string
  /** Approved, or not a loss: it does not count against the delete budget. */
  readonly isApproved?: boolean
}

export interface Refusal extends Omit<Change, 'markers' | 'group'> {
  /** Why the change is refused. */
  readonly code: Reason
  readonly why: string
  /** ms since the epoch, when it will be made without an approval. */
  readonly until?: number
  /** An approval lets the change pass. */
  readonly isApprovable?: boolean
  /** UID of the source that has the name. */
  readonly holder?: string
  /** Id of the held set that contains it. */
  readonly set?: string
  /** ms since the epoch, when it was first held for this code. */
  readonly since?: number
}

export interface Plan extends ZoneId {
  readonly number: number
  readonly owner: string
  /** Digest of the sets at every name the plan touches; when it changed, the plan is void. */
  readonly base: string
  readonly scope: 'all' | readonly string[]
  readonly changes: readonly Change[]
  readonly refused: readonly Refusal[]
  /** The guard state once this plan has begun. */
  readonly state: GuardState
}

/**
 * Numbers grow with time, so plans of different processes are ordered without coordination; when the clock moved
 * backwards, the newest known number is incremented instead.
 */
export function nextPlanNumber(now: number, fence: number, view: ZoneView): number {
  return Math.max(Math.floor(now), Math.max(fence, view.newestPlan) + 1)
}

export function touchedNames(changes: readonly Change[]): Set<string> {
  const names = new Set<string>()
  for (const change of changes) {
    // The group is the name that the change is about, also when it writes only a marker.
    names.add(change.name).add(change.group)
    for (const { from, to } of change.markers) names.add((from ?? to)?.name ?? change.name)
  }
  return names
}

export function baseOf(changes: readonly Change[], view: ZoneView): string {
  return digestOf([...touchedNames(changes)].flatMap((name) => view.typesAt(name)))
}
