/** `GET /api/v1/plan`: pending changes by zone, and what holds each. `GET /api/v1/records`: what is in a zone, and whose. */
import type { API_VERSION, EventView, ObjectRef } from './state.ts'

export interface PlanPage {
  readonly apiVersion: typeof API_VERSION
  readonly kind: 'Plan'
  readonly at: string
  readonly zones: readonly ZonePlan[]
  /** Of records and of objects, oldest first. */
  readonly held: readonly HeldView[]
  /** Zones that could not be read: what is pending there is not known. */
  readonly unread: readonly { readonly zone: string; readonly reason: string; readonly text: string }[]
}

export interface ZonePlan {
  readonly zone: string
  readonly provider: string
  readonly changes: readonly {
    readonly op: 'create' | 'update' | 'delete'
    readonly name: string
    readonly type: string
    readonly from: readonly string[]
    readonly to: readonly string[]
    readonly reason: string
  }[]
  readonly changesTotal: number
}

export interface HeldView {
  /** Changes with the same id are approved together. */
  readonly id: string
  /** Zone, or the kind of object. */
  readonly scope: string
  readonly op: string
  readonly name: string
  readonly type: string
  readonly reason: string
  readonly text: string
  readonly since?: string
  /** `seamark approve ID`; empty: no approval lets it pass. */
  readonly command: string
  readonly object?: ObjectRef
}

export interface RecordsPage {
  readonly apiVersion: typeof API_VERSION
  readonly kind: 'Records'
  readonly at: string
  /** Sorted by name and type. At most `limit`. */
  readonly records: readonly RecordView[]
  readonly total: number
}

export interface RecordView {
  readonly zone: string
  readonly name: string
  readonly type: string
  readonly ttl: number
  readonly values: readonly string[]
  /** `ours`: of this installation; `other`: the marker of another owner; `none`: no marker. */
  readonly ownership: 'ours' | 'other' | 'none'
  readonly owner?: string
  /** `DNSEndpoint shop/web` */
  readonly source?: string
  /** The host page that shows it. */
  readonly host?: string
}

/** `GET /api/v1/history`: newest first. */
export interface HistoryPage {
  readonly apiVersion: typeof API_VERSION
  readonly kind: 'History'
  readonly events: readonly EventView[]
}
