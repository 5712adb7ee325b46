/**
 * One stream of the Aggregated Discovery Service: what a client subscribed to, what it has, and what to send next. The
 * two variants of the protocol differ in how requests and responses are written; the decisions are the same.
 *
 * Flow: a request, an acknowledgement, a new configuration or a timer calls `pump`, which sends at most one response of
 * each type and then waits for the client's answer to it.
 *
 * Guarantees:
 * - Make before break: updates of listeners and routes wait until the client has the clusters and their endpoints (at most
 *   `gateMs`), routes also wait for listeners; clusters are removed `removalDelayMs` after listeners and routes settled.
 * - A version that the client rejected, or has already, is not sent again.
 * - One response of a type is outstanding at most: a client that reads slowly gets the newest state, and no queue grows.
 */
import type { Clock } from '@seamark/kube'
import { hashOf, RESOURCE_TYPES, type Resource, type ResourceMap, type ResourceType } from './resource.ts'

/** How a request changes a subscription. */
export type Subscription =
  /** State of the world: these names and no others; none at first: all of the type. */
  | { readonly kind: 'replace'; readonly names: readonly string[]; readonly version: string }
  | {
      readonly kind: 'delta'
      readonly subscribe: readonly string[]
      readonly unsubscribe: readonly string[]
      /** Versions that the client has from an earlier stream. */
      readonly initial: Readonly<Record<string, string>>
    }

export interface SessionRequest {
  readonly type: ResourceType
  /** Of the response that this request answers; empty if it answers none. */
  readonly nonce: string
  /** Set if the client rejected that response. */
  readonly error?: string
  readonly subscription: Subscription
}

export interface SessionResponse {
  readonly type: ResourceType
  readonly nonce: string
  /** Of the whole subscription; empty in the delta variant, where each resource has its own. */
  readonly version: string
  readonly resources: readonly Resource[]
  readonly removed: readonly string[]
}

export interface SessionDeps {
  readonly clock: Clock
  readonly resources: (type: ResourceType) => ResourceMap
  readonly send: (response: SessionResponse) => void
  readonly onAccepted: (type: ResourceType, names: readonly string[]) => void
  readonly onRejected: (type: ResourceType, names: readonly string[], message: string) => void
}

export interface SessionOptions {
  /** @default 5 s */
  readonly gateMs?: number
  /** @default 5 s */
  readonly removalDelayMs?: number
}

interface Known {
  readonly version: string
  /** Undefined for what the client reported itself. */
  readonly resource?: Resource
}

interface Pending {
  readonly nonce: string
  readonly sent: readonly string[]
}

class TypeState {
  isSubscribed = false
  isWildcard = false
  /** The first request is answered even when there are no resources. */
  needsAnswer = false
  readonly names = new Set<string>()
  /** What the client has, or was sent last. */
  readonly known = new Map<string, Known>()
  /** Names that the client answered for on this stream, or reported. */
  readonly settled = new Set<string>()
  /** Subscribed names that do not exist and were reported so. */
  readonly absent = new Set<string>()
  pending: Pending | undefined
  lastNonce = ''
}

/** The client keeps these until it unsubscribes: a name that vanishes may still be used by routes that are about to go. */
const WILDCARD_TYPES: ReadonlySet<ResourceType> = new Set(['listener', 'cluster'])

export class Session {
  readonly #deps: SessionDeps
  readonly #isDelta: boolean
  readonly #gateMs: number
  readonly #removalDelayMs: number
  readonly #states: Readonly<Record<ResourceType, TypeState>> = {
    cluster: new TypeState(),
    endpoints: new TypeState(),
    secret: new TypeState(),
    listener: new TypeState(),
    route: new TypeState(),
  }
  /** Clusters that the client rejected: nothing waits for their endpoints. */
  readonly #rejectedClusters = new Set<string>()
  #nonces = 0
  #isGateOpen = false
  #cancelGate: (() => void) | undefined
  /** Clusters that may be removed now. */
  #removable: ReadonlySet<string> = new Set()
  /** Clusters that were absent for the whole delay so far. */
  #leaving: ReadonlySet<string> = new Set()
  #cancelRemoval: (() => void) | undefined
  #isClosed = false

  constructor(variant: 'delta' | 'state-of-the-world', deps: SessionDeps, options: SessionOptions = {}) {
    this.#deps = deps
    this.#isDelta = variant === 'delta'
    this.#gateMs = options.gateMs ?? 5_000
    this.#removalDelayMs = options.removalDelayMs ?? 5_000
  }

  receive(request: SessionRequest): void {
    const state = this.#states[request.type]
    const { subscription } = request
    // State of the world: the names of a request that answers an older response are older than what was sent since.
    if (subscription.kind === 'replace' && state.isSubscribed && request.nonce !== state.lastNonce) return
    if (state.pending !== undefined && request.nonce === state.pending.nonce) this.#answered(state, request)
    if (subscription.kind === 'replace') this.#replace(request.type, state, subscription)
    else this.#change(request.type, state, subscription)
    this.pump()
  }

  /** Sends what is due. */
  pump(): void {
    if (this.#isClosed) return
    const isReady = this.#areClustersReady()
    let isHolding = false
    for (const type of RESOURCE_TYPES) {
      const state = this.#states[type]
      if (!state.isSubscribed || state.pending !== undefined) continue
      const isHeld = !this.#isGateOpen && this.#isHeld(type, isReady)
      isHolding = this.#sendDue(type, state, isHeld) || isHolding
    }
    this.#watchGate(isHolding)
    this.#watchRemovals()
  }

  close(): void {
    this.#isClosed = true
    this.#cancelGate?.()
    this.#cancelRemoval?.()
  }

  #answered(state: TypeState, { type, error }: SessionRequest): void {
    const { sent } = state.pending ?? { sent: [] }
    state.pending = undefined
    for (const name of sent) state.settled.add(name)
    if (error === undefined) {
      if (type === 'cluster') for (const name of sent) this.#rejectedClusters.delete(name)
      return this.#deps.onAccepted(type, sent)
    }
    // Envoy names the resources that it rejects and takes the others of the response.
    const named = sent.filter((name) => isNamed(error, name))
    const rejected = named.length > 0 ? named : sent
    if (type === 'cluster') for (const name of rejected) this.#rejectedClusters.add(name)
    this.#deps.onRejected(type, rejected, error)
  }

  #replace(type: ResourceType, state: TypeState, { names, version }: Extract<Subscription, { kind: 'replace' }>): void {
    const isFirst = !state.isSubscribed
    state.isSubscribed = true
    if (isFirst) state.isWildcard = WILDCARD_TYPES.has(type) && (names.length === 0 || names.includes('*'))
    const wanted = new Set(names)
    for (const name of state.names) if (!wanted.has(name)) this.#forget(state, name)
    state.names.clear()
    for (const name of wanted) state.names.add(name)
    if (!isFirst) return
    state.needsAnswer = version === ''
    if (version === '') return
    // A client of an earlier stream: it has exactly this, or something older.
    const current = this.#wanted(type, state)
    const isCurrent = version === versionOf(current)
    for (const resource of current) {
      state.known.set(resource.name, isCurrent ? { version: resource.version, resource } : { version: '' })
      state.settled.add(resource.name)
    }
  }

  #change(type: ResourceType, state: TypeState, subscription: Extract<Subscription, { kind: 'delta' }>): void {
    const { subscribe, unsubscribe, initial } = subscription
    const isFirst = !state.isSubscribed
    state.isSubscribed = true
    if (isFirst) {
      state.isWildcard = WILDCARD_TYPES.has(type) && (subscribe.length === 0 || subscribe.includes('*'))
      for (const [name, version] of Object.entries(initial)) {
        state.known.set(name, { version })
        state.settled.add(name)
      }
      state.needsAnswer = state.known.size === 0
    }
    for (const name of unsubscribe) {
      state.names.delete(name)
      this.#forget(state, name)
    }
    for (const name of subscribe) {
      if (name === '*') continue
      state.names.add(name)
      // A name that is subscribed to again is answered again.
      if (!(isFirst && Object.hasOwn(initial, name))) this.#forget(state, name)
    }
  }

  #forget(state: TypeState, name: string): void {
    state.known.delete(name)
    state.settled.delete(name)
    state.absent.delete(name)
  }

  #wanted(type: ResourceType, state: TypeState): Resource[] {
    const all = this.#deps.resources(type)
    if (state.isWildcard) return [...all.values()]
    return [...state.names].flatMap((name) => all.get(name) ?? [])
  }

  /** @returns whether something is held back */
  #sendDue(type: ResourceType, state: TypeState, isHeld: boolean): boolean {
    const wanted = this.#wanted(type, state)
    const changed = wanted.filter(({ name, version }) => state.known.get(name)?.version !== version)
    const gone = this.#gone(type, state)
    // What is new to the client replaces nothing, and is not held back.
    const isNew = ({ name }: Resource) => !state.known.has(name)
    const isWhole = !this.#isDelta && WILDCARD_TYPES.has(type)
    const sendable = !isHeld ? changed : isWhole && state.known.size > 0 ? [] : changed.filter(isNew)
    const removed = isHeld ? [] : gone
    const isHolding = isHeld && sendable.length + removed.length < changed.length + gone.length
    if (sendable.length + removed.length === 0 && !state.needsAnswer) return isHolding
    const resources = isWhole ? [...wanted, ...this.#kept(state, removed)] : sendable
    const nonce = String(++this.#nonces)
    state.needsAnswer = false
    state.lastNonce = nonce
    state.pending = { nonce, sent: resources.map(({ name }) => name) }
    for (const resource of resources) state.known.set(resource.name, { version: resource.version, resource })
    for (const name of removed) {
      state.known.delete(name)
      if (!state.isWildcard) state.absent.add(name)
    }
    this.#deps.send({ type, nonce, version: this.#isDelta ? '' : versionOf(wanted), resources, removed })
    return isHolding
  }

  /** Names that the client has to drop, or that it asked for and that do not exist. */
  #gone(type: ResourceType, state: TypeState): string[] {
    const all = this.#deps.resources(type)
    if (!state.isWildcard) {
      const isUnanswered = (name: string) => !all.has(name) && !state.known.has(name) && !state.absent.has(name)
      return this.#isDelta ? [...state.names].filter(isUnanswered) : []
    }
    const gone = [...state.known.keys()].filter((name) => !all.has(name))
    return type === 'cluster' ? gone.filter((name) => this.#removable.has(name)) : gone
  }

  /** State of the world: clusters that are to be removed later are part of every response until then. */
  #kept(state: TypeState, removed: readonly string[]): Resource[] {
    const all = this.#deps.resources('cluster')
    return [...state.known].flatMap(([name, { resource }]) => {
      return resource === undefined || all.has(name) || removed.includes(name) || state !== this.#states.cluster
        ? []
        : [resource]
    })
  }

  #isHeld(type: ResourceType, isReady: boolean): boolean {
    switch (type) {
      case 'cluster':
      case 'endpoints':
      case 'secret':
        return false
      case 'listener':
        return !isReady
      case 'route':
        return !isReady || !this.#isSettled('listener')
    }
  }

  #areClustersReady(): boolean {
    const { cluster, endpoints } = this.#states
    if (!cluster.isSubscribed) return true
    if (!this.#isSettled('cluster')) return false
    if (!cluster.isWildcard) return true
    for (const name of this.#deps.resources('endpoints').keys())
      if (!endpoints.settled.has(name) && !this.#rejectedClusters.has(name)) return false
    return true
  }

  /** The client has answered for the newest version of everything of the type. */
  #isSettled(type: ResourceType): boolean {
    const state = this.#states[type]
    if (!state.isSubscribed) return true
    if (state.pending !== undefined) return false
    return this.#wanted(type, state).every(({ name, version }) => state.known.get(name)?.version === version)
  }

  #watchGate(isHolding: boolean): void {
    if (!isHolding) {
      this.#cancelGate?.()
      this.#cancelGate = undefined
      this.#isGateOpen = false
      return
    }
    this.#cancelGate ??= this.#deps.clock.after(this.#gateMs, () => {
      this.#cancelGate = undefined
      this.#isGateOpen = true
      this.pump()
    })
  }

  #watchRemovals(): void {
    const all = this.#deps.resources('cluster')
    const { cluster } = this.#states
    const gone = cluster.isWildcard ? [...cluster.known.keys()].filter((name) => !all.has(name)) : []
    // A cluster that was removed, or came back, has to wait again the next time.
    if (this.#removable.size > 0) this.#removable = new Set(gone.filter((name) => this.#removable.has(name)))
    if (this.#leaving.size > 0) this.#leaving = new Set(gone.filter((name) => this.#leaving.has(name)))
    if (gone.length === 0 || this.#cancelRemoval !== undefined) return
    if (!this.#isSettled('listener') || !this.#isSettled('route')) return
    this.#leaving = new Set(gone)
    this.#cancelRemoval = this.#deps.clock.after(this.#removalDelayMs, () => {
      this.#cancelRemoval = undefined
      this.#removable = this.#leaving
      this.#leaving = new Set()
      this.pump()
    })
  }
}

/** The name as a whole: `ingress_http` is not meant by `ingress_https`. */
function isNamed(message: string, name: string): boolean {
  const isPart = (char: string | undefined) => char !== undefined && /[\w/*-]/.test(char)
  for (let at = message.indexOf(name); at >= 0; at = message.indexOf(name, at + 1))
    if (!isPart(message[at - 1]) && !isPart(message[at + name.length])) return true
  return false
}

/** Of a set of resources: equal if and only if names and contents are. */
function versionOf(resources: readonly Resource[]): string {
  return hashOf(
    resources
      .map(({ name, version }) => `${name} ${version}\n`)
      .toSorted()
      .join(''),
  )
}
