/**
 * States, messages, conditions and Events of a load balancer: the words of the contract for what was decided. Pure.
 */
import { type Condition, type Immutable, setCondition } from '@seamark/kube'
import type { DNSLoadBalancer, DNSLoadBalancerStatus } from '../../api/dns-load-balancer.ts'
import type { Verdict } from '../../health/verdict.ts'
import type { Reason } from '../../reasons.ts'
import { compareText } from '../../rrset/rrset.ts'
import type { Candidate } from './endpoints.ts'
import { type BalanceEvent, warning } from '../balance-event.ts'
import type { BalancerSettings } from '../load-balancer.ts'
import type { Selection } from './select.ts'

export const READY_CONDITION = 'Ready'
/** INV-19. */
export const MAX_CHANGES_PER_MINUTE = 6

export type ProviderFact =
  | { readonly state: 'ready' }
  | { readonly state: 'missing' }
  | { readonly state: 'outOfScope'; readonly provider: string }
  | { readonly state: 'unreadable'; readonly error: string }
  /** The records of the name have another owner, which `message` names. */
  | { readonly state: 'foreign'; readonly message: string }

export interface StatusFacts {
  readonly nowMs: number
  readonly loadBalancer: Immutable<DNSLoadBalancer>
  /** Verdict on the DNS name itself. */
  readonly nameVerdict: Verdict
}

/** The findings of the decision about the load balancer, before they become a status. */
export interface Finding {
  readonly reason: Reason
  readonly message: string
  readonly isReady: boolean
  readonly state?: 'Error' | 'unreachable'
  /** Undefined: as it was. */
  readonly active: readonly Candidate[] | undefined
  readonly events: readonly BalanceEvent[]
}

interface FindingInput {
  readonly provider: ProviderFact
  readonly settings: BalancerSettings
  readonly candidates: readonly Candidate[]
  readonly records: { readonly kind: 'publish' | 'hold' | 'remove'; readonly isChange?: boolean }
  readonly reason: Reason
  readonly active: readonly Candidate[]
  readonly selection: Selection
  readonly maxChangesPerMinute: number
}

/** States and messages of the contract. */
export function findingOf({
  provider,
  settings,
  candidates,
  records,
  reason,
  active,
  selection,
  maxChangesPerMinute,
}: FindingInput): Finding {
  const { dnsName, namespace } = settings
  const failed = (message: string, more: Partial<Finding> = {}): Finding => ({
    reason,
    message,
    isReady: false,
    active,
    events: [warning(message)],
    ...more,
  })
  if (candidates.length === 0)
    return failed('no endpoints configured', { reason: 'NoEndpoints', state: 'unreachable', active: [] })
  switch (provider.state) {
    case 'missing':
      return failed(`no provider found for '${dnsName}'`, { reason: 'NoMatchingZone', active: [] })
    case 'outOfScope':
      return failed(`provider '${provider.provider}' not valid for namespace '${namespace}'`, {
        reason: 'ProviderOutOfScope',
        active: [],
      })
    case 'unreadable': {
      const message = `Cannot get DNS records for '${dnsName}': ${provider.error}`
      return failed(message, {
        reason: 'ProviderUnavailable',
        events: [warning(`error handling ${dnsName}: ${message}`)],
      })
    }
    case 'foreign':
      return failed(provider.message, { reason: 'ForeignOwner', state: 'Error', active: [] })
    case 'ready':
  }
  if (selection.reason === 'AllUnhealthy') return failed('no healthy targets found')
  if (records.kind === 'hold')
    return { reason, message: heldMessages(maxChangesPerMinute)[reason] ?? '', isReady: false, active, events: [] }
  const isChange = records.kind === 'publish' && records.isChange === true
  return {
    reason,
    message: '',
    isReady: true,
    active,
    events: isChange ? [{ type: 'Normal', message: replacing(settings, active) }] : [],
  }
}

const heldMessages = (maxChangesPerMinute: number): Partial<Record<Reason, string>> => ({
  ChangeRateLimited: `the records changed ${maxChangesPerMinute} times within a minute; the next change waits`,
  HealthUnknown: 'the health of the endpoints is not known yet; the records stay as they are',
  TargetUnresolved: 'no address is known for the host names of the endpoints; the records stay as they are',
})

/** The original prefixes each host with a blank, hence two of them after "with". */
export function replacing({ dnsName }: BalancerSettings, active: readonly Candidate[]): string {
  return `replacing ${dnsName} with ${active.map(({ host }) => ` ${host}`).join('')}`
}

export function statusOf(facts: StatusFacts, finding: Finding): DNSLoadBalancerStatus {
  const { metadata, status: before } = facts.loadBalancer
  const active =
    finding.active === undefined
      ? before?.active
      : finding.active
          .map(({ name, host, target }) => ({
            name,
            ...(target.type === 'CNAME' ? { cname: host } : { ipaddress: host }),
          }))
          .sort((a, b) => compareText(a.name, b.name))
  const conditions = setCondition(
    before?.conditions,
    {
      type: READY_CONDITION,
      status: finding.isReady ? 'True' : 'False',
      reason: finding.reason,
      message: finding.message,
      ...(metadata.generation !== undefined && { observedGeneration: metadata.generation }),
    },
    facts.nowMs,
  )
  return {
    state: finding.state ?? nameState(facts.nameVerdict, before?.state),
    ...(finding.message !== '' && { message: finding.message }),
    ...(active !== undefined && active.length > 0 && { active: active.map((each) => ({ ...each })) }),
    ...(metadata.generation !== undefined && { observedGeneration: metadata.generation }),
    conditions: conditions as Condition[],
  }
}

/** State of the DNS name itself, independent of its endpoints; unknown leaves it as it was. */
function nameState(verdict: Verdict, before: string | undefined): string {
  if (verdict === 'healthy') return 'healthy'
  if (verdict === 'unhealthy') return 'unreachable'
  return before === 'healthy' ? 'healthy' : 'unreachable'
}
