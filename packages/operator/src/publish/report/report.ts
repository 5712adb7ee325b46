/**
 * Reports on the source: an Event for a new finding, and a condition where the kind allows other controllers to add one
 * (HTTPProxy does). A failure of either never fails a reconcile.
 *
 * An Event is sent when a finding was absent at the previous decision of this process. On the first decision after a start
 * none is sent unless `reportsInitialFindings`: a migration or restart that changes nothing must not write.
 */
import type { Condition } from '@seamark/kube'
import { setCondition } from '@seamark/kube'
import type { Immutable, Key, Obj } from '@seamark/kube/object'
import { type DNSEndpoint, SERVED_CONDITION } from '../../api/dns-endpoint.ts'
import type { HTTPProxy } from '@seamark/kube/contour'
import type { Finding } from '../../finding.ts'
import type { HeldRecords } from '../../safety/held-records.ts'
import { CONDITION_TYPE } from '../watches.ts'

/** What a decision reports: findings about the source, and conflicts with another object, of which both are told. */
type Topic = 'findings' | 'conflicts'

export interface FindingHistory {
  /** Warnings that are new since the last call for this source and topic; empty on the first one. */
  takeNew(kind: string, key: Key, topic: Topic, findings: readonly Finding[]): readonly Finding[]
  forget(kind: string, key: Key): void
}

/** The warnings of the last decision. */
type Told = Readonly<Record<Topic, readonly string[] | undefined>>

const NOTHING: readonly string[] = []
/** Most sources have nothing to report: they share one of these, in the order in which topics are reported. */
const SHARED: readonly Told[] = [
  { findings: NOTHING, conflicts: undefined },
  { findings: NOTHING, conflicts: NOTHING },
]

export function createFindingHistory(reportsInitialFindings: boolean): FindingHistory {
  const last = new Map<string, Map<Key, Told>>()
  return {
    takeNew(kind, key, topic, findings) {
      let told = last.get(kind)
      if (told === undefined) last.set(kind, (told = new Map()))
      const known = told.get(key)
      const before = known?.[topic]
      const warnings = findings.filter(({ severity }) => severity === 'Warning')
      const texts = warnings.length === 0 ? NOTHING : warnings.map(textOf)
      if (texts !== before)
        told.set(key, topic === 'findings' ? sharedOf(texts, known?.conflicts) : sharedOf(known?.findings, texts))
      if (before === undefined && !reportsInitialFindings) return []
      return warnings.filter((finding) => before?.includes(textOf(finding)) !== true)
    },
    forget: (kind, key) => void last.get(kind)?.delete(key),
  }
}

function sharedOf(findings: Told['findings'], conflicts: Told['conflicts']): Told {
  return SHARED.find((each) => each.findings === findings && each.conflicts === conflicts) ?? { findings, conflicts }
}

function textOf({ reason, message }: Finding): string {
  return `${reason} ${message}`
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
