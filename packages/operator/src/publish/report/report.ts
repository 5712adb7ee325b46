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

/** The report of the records capability about the DNSEndpoints of a source, when it holds one of their records. */
export function findHeldDns(children: readonly { readonly object: Immutable<Obj> }[]): string | undefined {
  for (const { object } of children) {
    const conditions = (object as Immutable<DNSEndpoint>).status?.conditions ?? []
    const served = conditions.find(({ type }) => type === SERVED_CONDITION)
    if (served?.status === 'False') return `DNS is held: ${served.reason}: ${served.message ?? ''}`
  }
  return undefined
}

/** The status to apply, or undefined when the condition is up to date. */
export function conditionStatus(
  object: Immutable<Obj>,
  findings: readonly Finding[],
  nowMs: number,
  heldDns?: string,
): { conditions: Condition[] } | undefined {
  const { status, metadata } = object as Immutable<HTTPProxy>
  const current = (status?.conditions ?? []) as Immutable<Condition[]>
  const fault =
    findings.find((finding) => finding.severity === 'Warning') ??
    findings.find((finding) => finding.reason === 'Excluded')
  const next = setCondition(
    current,
    {
      type: CONDITION_TYPE,
      status: fault === undefined ? 'True' : 'False',
      reason: fault?.reason ?? 'Published',
      message:
        fault?.message ?? `every object this source requests is in place${heldDns === undefined ? '' : `; ${heldDns}`}`,
      observedGeneration: metadata.generation ?? 0,
    },
    nowMs,
  )
  if (next === current) return undefined
  return { conditions: next.filter((condition) => condition.type === CONDITION_TYPE) }
}
