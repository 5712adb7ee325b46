/** What `seamark explain` is told about a host, and what it says: types only. gather.ts collects the facts. */
import type { Finding } from '../finding.ts'
import type { ManagerLease } from '../process/manager-lease.ts'
import type { Reason } from '../reasons.ts'
import type { AnswerState, Verdict, Waiting } from '../verdict.ts'

const HOPS = [
  'source',
  'claim',
  'policy',
  'placement',
  'leaf',
  'cluster',
  'health',
  'selection',
  'address',
  'certificate',
  'endpoint',
  'plan',
  'provider',
  'answer',
  'route',
] as const
export type HopName = (typeof HOPS)[number]

export interface Hop {
  readonly name: HopName
  /** `degraded`: it needs a look, and clients get an answer. `skipped`: not requested, or not known here; no fault. */
  readonly state: 'ok' | 'degraded' | 'broken' | 'skipped'
  readonly reason?: Reason
  readonly text: string
}

export interface Explanation {
  readonly host: string
  readonly hops: readonly Hop[]
  /** What to act on first; undefined: it is as it should be. */
  readonly firstBroken?: Hop
  readonly verdict: {
    readonly state: Verdict['state']
    /** One line, and one more for a deletion, move or drain that was asked for. */
    readonly text: string
    readonly at?: HopName
    readonly reason?: Reason
    readonly waiting?: Waiting
  }
}

interface SourceFact {
  /** `HTTPProxy shop/web` */
  readonly name: string
  /** Of the source as a whole: class, exclusion, claim. */
  readonly findings: readonly Finding[]
  readonly isPublishing: boolean
  /** A root that balance publishes, and the fleet has written nothing for it yet. */
  readonly isNewRoot?: boolean
}

export interface ExplainFacts {
  readonly host: string
  /** Every source that names the host; the one that publishes it is first. */
  readonly sources: readonly SourceFact[]
  readonly targets: readonly string[]
  readonly addressFindings: readonly Finding[]
  /** Undefined: none is requested. */
  readonly certificate: CertificateFact | undefined
  readonly endpoint: EndpointFact | undefined
  /** Undefined: no provider is configured. */
  readonly plan: PlanFact | undefined
  /** One of each DNS server of the host; empty or undefined: none could be asked, so that it is not known what clients get. */
  readonly answers: readonly AnswerFact[] | undefined
  /** Why no server was asked although one may be known: by a running manager, whose stored answers count. */
  readonly unasked?: string
  /** Zones of the manager's own DNS server, where it has no other provider. @default none */
  readonly ownZones?: readonly string[]
  /** Kinds that may not be read: their objects are unknown, not absent. */
  readonly forbidden?: readonly Finding[]
  /** DNSEndpoint is not installed: nothing can be published. */
  readonly missingKind?: Finding
  /** The manager's reports about the source: conditions and Events, which include the decisions of its guards. */
  readonly reported?: readonly Finding[]
  /** Undefined: unknown. */
  readonly manager?: ManagerFact
  /** False: sources get no record, certificate or DNSEndpoint (`publish.enabled: false`). @default true */
  readonly isPublishOn?: boolean
  /** Of a host of the fleet: in place of the hops of a source, its address, certificate and DNSEndpoint. */
  readonly fleet?: readonly Hop[]
  /** Of a host of the fleet: what its load balancer publishes, in place of the targets of a source. */
  readonly published?: readonly string[]
  /** Of a host of the fleet: what DNS servers answered when the manager last asked them. */
  readonly storedAnswer?: { readonly state: AnswerState; readonly hop: Hop }
  /** What a deletion, drain or move that was asked for waits for. */
  readonly waiting?: Waiting
  /** An answer contains some of the targets: by weight, by the region of the client. @default all */
  readonly isAnswerPartial?: boolean
  /** The load balancer that publishes the host, if one does. */
  readonly balance?: BalanceFact
  /** What the gateway of this cluster does with a request; undefined: no request was asked about. */
  readonly route?: { readonly isServed: boolean; readonly text: string }
}

export interface BalanceFact {
  /** `web/shop` */
  readonly name: string
  readonly endpoints: readonly {
    readonly name: string
    readonly host: string
    readonly health: 'healthy' | 'unhealthy' | 'unknown'
    /** RFC 3339. */
    readonly since?: string
    /** The result of the probe that made it so. */
    readonly detail: string
    readonly isActive: boolean
    /** Why it is published or not; undefined: no manager has decided yet. */
    readonly membership?: { readonly since: string; readonly message: string }
  }[]
  /** Of the `Ready` condition; undefined: no manager has decided yet. */
  readonly selection?: {
    readonly isReady: boolean
    readonly reason: string
    readonly message: string
    readonly since: string
  }
  /** Seconds for which a resolver may keep an older answer. */
  readonly ttl: number
  /** RFC 3339, when the set of published endpoints last changed; undefined: unknown. */
  readonly changedAt?: string
}

export interface ManagerFact {
  readonly isPaused: boolean
  readonly mode: 'enforce' | 'observe'
  /** Undefined: it uses none, or it may not be read. */
  readonly lease?: Pick<ManagerLease, 'key' | 'state' | 'renewedAt'>
}

export interface CertificateFact {
  readonly name: string
  readonly findings: readonly Finding[]
  readonly isPresent: boolean
  readonly isReady: boolean
  readonly message: string
  /** RFC 3339: since when it is not ready. */
  readonly since?: string
  /** Undefined: it is valid for long enough, or not known. Times are RFC 3339. */
  readonly validity?: { readonly state: 'expiring' | 'expired'; readonly until: string; readonly since: string }
  /** When `validity` changes by time alone, ms since the epoch. */
  readonly changesAtMs?: number
}

export interface EndpointFact {
  readonly name: string
  readonly targets: readonly string[]
  readonly generation: number
  /** ExternalDNS writes the generation that it has observed. */
  readonly observedGeneration: number | undefined
}

export interface PlanFact {
  readonly zone: string
  /** Descriptions of the pending changes. */
  readonly pending: readonly string[]
  readonly refused: readonly { readonly reason: Reason; readonly message: string }[]
  /** The provider's records of the name. */
  readonly records: readonly string[]
  readonly providerFault?: { readonly reason: Reason; readonly message: string }
  /** No manager has persisted a decision about the zone: in observe mode, while paused, or before its first plan. */
  readonly isWithoutState?: boolean
  /** The last change of the name removed its records: why and when, RFC 3339. */
  readonly removed?: { readonly at: string; readonly reason: Reason; readonly plan: number }
  /** What the manager reported about the pending changes, which cannot be computed again outside of it. */
  readonly reported?: readonly Finding[]
}

export interface AnswerFact {
  readonly server: string
  readonly targets: readonly string[]
  /** It gave no answer, and why. */
  readonly fault?: string
}
