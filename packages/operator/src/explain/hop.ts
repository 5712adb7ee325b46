/** How the hops of an explanation are made. Pure. */
import type { Finding } from '../finding.ts'
import type { Reason } from '../reasons.ts'
import type { ExplainFacts, Hop, HopName } from './facts.ts'

export const ok = (name: HopName, text: string): Hop => ({ name, state: 'ok', text })
export const skipped = (name: HopName, text: string): Hop => ({ name, state: 'skipped', text })
export const broken = (name: HopName, reason: Reason, text: string): Hop => ({ name, state: 'broken', reason, text })
/** Its fault changes no DNS answer. */
export const degraded = (hop: Hop): Hop => (hop.state === 'broken' ? { ...hop, state: 'degraded' } : hop)

export function byFinding(name: HopName, findings: readonly Finding[]): Hop | undefined {
  const fault = findings.find((finding) => finding.severity === 'Warning') ?? findings[0]
  return fault === undefined ? undefined : broken(name, fault.reason, fault.message)
}

export const PUBLISH_OFF = 'publish is off (publish.enabled: false)'

/** Undefined: a manager runs, or it is not known. */
export function idleText({ manager }: ExplainFacts): string | undefined {
  const lease = manager?.lease
  if (lease?.state !== 'expired') return undefined
  return `no manager holds Lease ${lease.key}${lease.renewedAt === undefined ? '' : ` since ${lease.renewedAt}`}`
}

export function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && new Set([...a, ...b]).size === new Set(a).size
}
