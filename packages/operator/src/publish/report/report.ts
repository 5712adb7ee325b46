/**
 * Reports on the source: an Event for a new finding, and a condition where the kind allows other controllers to add one
 * (HTTPProxy does). A failure of either never fails a reconcile.
 *
 * An Event is sent when a finding was absent at the previous decision of this process. On the first decision after a start
 * none is sent unless `reportsInitialFindings`: a migration or restart that changes nothing must not write.
 */
import type { Condition } from '@seamark/kube'
import { setCondition } from '@seamark/kube'
import type { Immutable, Obj } from '@seamark/kube/object'
import { type DNSEndpoint, SERVED_CONDITION } from '../../api/dns-endpoint.ts'
import type { HTTPProxy } from '@seamark/kube/contour'
import type { Finding } from '../../finding.ts'
import type { HeldRecords } from '../../safety/held-records.ts'
import { CONDITION_TYPE } from '../watches.ts'

export interface FindingHistory {
  /** Findings that are new since the last call for this owner; empty on the first one. */
  takeNew(owner: string, findings: readonly Finding[]): readonly Finding[]
  forget(owner: string): void
}

/** Most sources have no findings: they share this set. */
const NOTHING: ReadonlySet<string> = new Set()

export function createFindingHistory(reportsInitialFindings: boolean): FindingHistory {
  const last = new Map<string, ReadonlySet<string>>()
  return {
    takeNew(owner, findings) {
      const before = last.get(owner)
      const texts = findings.map((finding) => `${finding.reason} ${finding.message}`)
      last.set(owner, texts.length === 0 ? NOTHING : new Set(texts))
      if (before === undefined && !reportsInitialFindings) return []
      return findings.filter(
        (finding, index) => finding.severity === 'Warning' && !(before?.has(texts[index] ?? '') ?? false),
      )
    },
    forget: (owner) => void last.delete(owner),
  }
}

/** What records holds of a source. */
export interface HeldDns {
  readonly reason: string
  readonly message: string
  /** No zone contains the name: no client gets an answer, and waiting does not help. */
  readonly isNowhere: boolean
}

/** Of the DNSEndpoints of a source: as records of this process says, else the condition that another process wrote. */
export function findHeldDns(
  children: readonly { readonly object: Immutable<Obj> }[],
  records?: Pick<HeldRecords, 'of' | 'isLeft'>,
): HeldDns | undefined {
  for (const { object } of children) {
    const held = records?.of(object)
    if (held !== undefined) return { ...held, isNowhere: held.reason === 'NoMatchingZone' }
    const conditions = (object as Immutable<DNSEndpoint>).status?.conditions ?? []
    const served = conditions.find(({ type }) => type === SERVED_CONDITION)
    if (served?.status !== 'False' || records?.isLeft(object, served.reason) === true) continue
    const isNowhere = served.reason === 'NoMatchingZone' && !isObserved(object)
    return { reason: served.reason, message: served.message ?? '', isNowhere }
  }
  return undefined
}

/** Records of this process, or ExternalDNS, have written what a DNSEndpoint requests, now or in an earlier generation. */
export function isObserved(object: Immutable<Obj>): boolean {
  return (object as Immutable<DNSEndpoint>).status?.observedGeneration !== undefined
}

/** Whether the condition is about records of which nothing is known yet: what it says stays until they are. */
export function awaitsRecords(object: Immutable<Obj>, records: HeldRecords | undefined): boolean {
  if (records === undefined || records.isKnown) return false
  const conditions = (object as Immutable<HTTPProxy>).status?.conditions ?? []
  return conditions.find(({ type }) => type === CONDITION_TYPE)?.reason === 'NoMatchingZone'
}

/** The status to apply, or undefined when the condition is up to date. */
export function conditionStatus(
  object: Immutable<Obj>,
  findings: readonly Finding[],
  nowMs: number,
  heldDns?: HeldDns,
): { conditions: Condition[] } | undefined {
  const { status, metadata } = object as Immutable<HTTPProxy>
  const current = (status?.conditions ?? []) as Immutable<Condition[]>
  const fault =
    findings.find((finding) => finding.severity === 'Warning') ??
    findings.find((finding) => finding.reason === 'Excluded')
  const held = heldDns === undefined ? '' : `DNS is held: ${heldDns.reason}: ${heldDns.message}`
  const unserved = heldDns?.isNowhere === true ? { reason: heldDns.reason, message: held } : undefined
  const next = setCondition(
    current,
    {
      type: CONDITION_TYPE,
      status: fault === undefined && unserved === undefined ? 'True' : 'False',
      reason: fault?.reason ?? unserved?.reason ?? 'Published',
      message:
        fault?.message ??
        unserved?.message ??
        `every object this source requests is in place${held === '' ? '' : `; ${held}`}`,
      observedGeneration: metadata.generation ?? 0,
    },
    nowMs,
  )
  if (next === current) return undefined
  return { conditions: next.filter((condition) => condition.type === CONDITION_TYPE) }
}
