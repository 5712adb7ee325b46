/**
 * `GET /api/v1/state` and `seamark status -o json`: the overview, one value.
 *
 * Text of names, sentences and objects comes from clusters and is not trusted: whoever shows it escapes it. Times are RFC 3339
 * in UTC. Fields are added within v1; a reader ignores what it does not know.
 */

export const API_VERSION = 'dashboard.seamark.io/v1' as const

export interface State {
  readonly apiVersion: typeof API_VERSION
  readonly kind: 'State'
  /** Opaque; another one after each change. The id of the events of the stream. */
  readonly version: string
  readonly manager: ManagerView
  /** Sorted by name. */
  readonly clusters: readonly ClusterView[]
  /** Sorted by name. */
  readonly hosts: readonly HostView[]
  /** Sorted by name. */
  readonly zones: readonly ZoneView[]
  /** By harm, then age: what breaks answers first, and of these the oldest. */
  readonly needsYou: readonly NeedView[]
  /** How many there are, where `needsYou` is cut. */
  readonly needsYouTotal: number
  /** Newest first: at most an hour old, and at most MAX_EVENTS. */
  readonly lastHour: readonly EventView[]
  /** When something last changed; undefined: not in the time that this process has seen. */
  readonly changedAt?: string
}

/** Longer lists are cut; `needsYouTotal` says how long they are. */
export const MAX_NEEDS = 100
export const MAX_EVENTS = 200

export interface ManagerView {
  readonly version: string
  readonly namespace: string
  readonly mode: 'observe' | 'enforce'
  /** What pauses it: `configuration`, `annotation`; empty: it writes. */
  readonly pausedBy: readonly string[]
  /** Identity of the holder of the Lease; undefined: no election, or unknown. */
  readonly leader?: string
  readonly isLeading: boolean
  readonly capabilities: readonly string[]
  /** Of the gateway in this process; undefined: there is none, or Envoy serves. */
  readonly traffic?: TrafficView
  readonly data: DataAge
}

/** How old the data is. It is sent with each `beat` of the stream. */
export interface DataAge {
  /** `false`: the API server of the hub cannot be read; what is shown is the last known. */
  readonly isCurrent: boolean
  /** When the hub was last known to be as shown. */
  readonly readAt: string
  /** Why it is not current. */
  readonly message?: string
}

/** In the order of precedence: the first that holds. */
export type ClusterState = 'Unreachable' | 'Draining' | 'Drained' | 'Unhealthy' | 'Serving'

export interface ClusterView {
  readonly name: string
  readonly state: ClusterState
  /** One sentence: why it is in this state. */
  readonly text: string
  readonly reason?: string
  readonly since?: string
  /** DNS still answers addresses of a cluster that is unreachable or drains. */
  readonly answersStill: boolean
  /** Of all answers that clients get now, in [0, 1]. */
  readonly share: number
  /** Hosts with a leaf or an address on it. */
  readonly hosts: number
  /** Hosts whose answer contains an address of it now. */
  readonly answeredHosts: number
  readonly leaves: number
  readonly weight?: number
  readonly location?: string
  readonly version?: string
  /** Of a drain: until when it should be over. */
  readonly until?: string
  readonly addresses: readonly string[]
  /** Only of a gateway in this process. Health checks count, too. */
  readonly traffic?: TrafficView
}

export interface TrafficView {
  readonly requestsPerSecond: number
  readonly errorsPerSecond: number
}

export type HostState = 'as it should be' | 'degraded' | 'broken'

export interface HostView {
  /** Lower case, ASCII: at most 253 octets. */
  readonly name: string
  /** What declares it: `Ingress shop/web`. */
  readonly owner: string
  /** Of the owner; empty: cluster-scoped. */
  readonly namespace: string
  readonly by: 'fleet' | 'balance' | 'publish' | 'wildcard' | 'records'
  readonly state: HostState
  /** The verdict in one line, as `seamark explain` gives it. */
  readonly text: string
  /** The hop that the verdict is about. */
  readonly at?: string
  readonly reason?: string
  readonly since?: string
  readonly waiting?: WaitingView
  /** A guard holds a change of it. */
  readonly held?: { readonly reason: string; readonly since?: string; readonly command: string }
  /** Zone of ours that has the name; undefined: none. */
  readonly zone?: string
  /** Seconds. */
  readonly ttl?: number
  /** `zone`: the zone that our server answers from. `asked`: what authoritative servers answered. `published`: neither is known. */
  readonly answersFrom: 'zone' | 'asked' | 'published'
  /** What clients get and what they would get if the state of the targets were another one; sorted by address. */
  readonly answers: readonly AnswerView[]
}

export interface WaitingView {
  readonly what: 'deleted' | 'moved' | 'drained'
  readonly waitsFor: string
  readonly until?: string
}

/** A band of the flow: name → answer → cluster → gateway → service. */
export interface AnswerView {
  /** An address, or the name of a CNAME. */
  readonly address: string
  /** Of the answers that clients get now, in [0, 1]; 0: they do not get it. */
  readonly share: number
  /** `cached`: withdrawn, and resolvers may give it until `cachedUntil`. `foreign`: answered, and no target of ours has it. */
  readonly state: 'answered' | 'draining' | 'cached' | 'withdrawn' | 'unhealthy' | 'foreign'
  readonly isHeld: boolean
  readonly cachedUntil?: string
  readonly cluster?: string
  /** Ingress class, Gateway or router of the leaf. */
  readonly gateway?: string
  /** `shop/web:80` */
  readonly services?: readonly string[]
}

export interface ZoneView {
  readonly name: string
  /** Name of the provider; `embedded`: our own server. */
  readonly provider: string
  readonly isServed: boolean
  readonly serial?: number
  /** RRsets, of another provider: names that are ours. */
  readonly records: number
  /** RRsets without our marker; undefined: not read here. */
  readonly foreign?: number
  readonly held: number
  readonly fault?: string
}

export interface ObjectRef {
  readonly kind: string
  readonly name: string
  readonly namespace?: string
}

/** One line of *Needs you*. */
export interface NeedView {
  readonly id: string
  readonly what: 'held' | 'refused' | 'failing' | 'expiring' | 'drifting'
  /** `broken`: clients get a wrong answer or none. */
  readonly severity: 'broken' | 'degraded'
  readonly reason: string
  readonly object: ObjectRef
  readonly text: string
  readonly since?: string
  /** What to type. */
  readonly command: string
  readonly host?: string
  readonly cluster?: string
  readonly zone?: string
}

/** One point of *Last hour*, and one line of *History*. */
export interface EventView {
  readonly id: string
  readonly at: string
  /** `change`: an object changed. `verdict`: what we think changed. `command`: somebody asked for it. `verified`: DNS shows it. */
  readonly what: 'change' | 'verdict' | 'command' | 'verified' | 'held'
  readonly severity: 'normal' | 'warning'
  readonly reason: string
  readonly object: ObjectRef
  readonly text: string
  readonly host?: string
  readonly cluster?: string
  /** How often, until `at`. */
  readonly count?: number
}
