/**
 * Every host of this installation and the facts about it from the caches of the manager: for the page, which shows all of them at
 * once. `explain` makes the verdict of them, as it does of the facts that gather.ts reads for one host.
 *
 * Flow: `start` subscribes to the kinds of the capabilities; each change marks the hosts that it is about; `takeDirty` returns
 * them; `factsOf` collects. Costs follow what changed, not how many hosts there are.
 * Guarantees: reads caches and zones of this process only, and writes nothing. What is not cached (the records of
 * other providers, the Events of a source) is not known here, and counts as neither present nor absent.
 */
import { type Change, type Index, type Informer, type Informers, NotSynced, poll, systemClock } from '@seamark/kube'
import { type Immutable, keyOf, type Kind, type Obj, parseKey } from '@seamark/kube/object'
import { normalizeHost } from '@seamark/dialects'
import { Certificate } from '../api/certificate.ts'
import { Cluster } from '../api/cluster.ts'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { GlobalIngress } from '../api/global-ingress.ts'
import { HostClaim } from '../api/host-claim.ts'
import { LeafIngress } from '../api/leaf-ingress.ts'
import { recordsObjectName } from '../balance/write/records-object.ts'
import { claimNames } from '../balance/decide/claims.ts'
import { BALANCE_DEFAULTS } from '../balance/load-balancer.ts'
import { claimName } from '../fleet/decide/host-claim.ts'
import { hostOf } from '../hosts/load-balancer.ts'
import { ROOT_UID_LABEL } from '../hosts/root.ts'
import { type HostTrace, hostsOf, traceOf } from '../fleet/trace.ts'
import { findOwner } from '../publish/decide/child.ts'
import { createSourceDecider, type SourceDecider } from '../publish/decide/source-decision.ts'
import type { PublishOptions, SourceKind } from '../publish/options.ts'
import { readAlone, sourceKindToken } from '../publish/sources/source-reader.ts'
import { canonicalName, isInvalid } from '../rrset/rrset.ts'
import { balanceFactOf } from './balance-fact.ts'
import { ClusterAddresses } from './cluster-addresses.ts'
import { certificateFact } from './certificate-fact.ts'
import type { BalanceFact, CertificateFact, ExplainFacts } from './facts.ts'
import { directEndpointOf } from './direct-endpoint.ts'
import { fleetFacts } from './fleet-facts.ts'
import { choose, directFacts, endpointFact, type HostDecision, ownedEndpoint, sourceFacts } from './gather.ts'

export interface CachedHostsDeps {
  readonly informers: Pick<Informers, 'informer' | 'get' | 'list' | 'by' | 'index' | 'ownFields'>
  readonly hasFleet: boolean
  readonly hasBalance: boolean
  /** Undefined: publish is off. */
  readonly publish: PublishOptions | undefined
  /** Where DNSEndpoints are watched. */
  readonly endpointScope: { readonly namespace?: string }
}

/** What declares a host, and what it is made of; an `owner` of '': nothing does any more, and its records are kept. */
export interface CachedHost {
  /** Without plan and answer: those are of DNS. */
  readonly facts: Omit<ExplainFacts, 'plan' | 'answers'>
  readonly by: 'fleet' | 'balance' | 'publish' | 'wildcard' | 'records'
  /** `Ingress shop/web` */
  readonly owner: string
  readonly namespace: string
  readonly trace: HostTrace | undefined
  readonly balancer: Immutable<DNSLoadBalancer> | undefined
  /** Of the load balancer. */
  readonly endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[]
  readonly leaves: readonly Immutable<LeafIngress>[]
  /** The DNSEndpoint that has its records. */
  readonly records: Immutable<DNSEndpoint> | undefined
  readonly ttl: number | undefined
}

/** Names such as _acme-challenge.shop.example.com are no hosts. */
const isHost = (name: string): boolean => name !== '' && !name.startsWith('_') && name.includes('.')

export class CachedHosts {
  readonly #deps: CachedHostsDeps
  readonly #decider: SourceDecider | undefined
  /** How many objects name a host. */
  readonly #names = new Map<string, number>()
  /** Nothing may name them any more, and their records are kept. */
  #kept: ReadonlySet<string> = new Set()
  readonly #dirty = new Set<string>()
  readonly #dirtyClusters = new Set<string>()
  /** Sources that name a host: `Kind namespace/name`. Most hosts have one, which takes a quarter of the memory of a Set of one. */
  readonly #sources = new Map<string, string | Set<string>>()
  readonly #addresses = new ClusterAddresses()
  #listener: () => void = () => undefined
  #certificates: Pick<Informer<Certificate>, 'hasSynced' | 'state'> | undefined
  readonly #watched: Pick<Informer<Obj>, 'hasSynced' | 'failure'>[] = []
  readonly #index: {
    readonly globals: Index<GlobalIngress>
    readonly globalsByUid: Index<GlobalIngress>
    readonly leaves: Index<LeafIngress>
    readonly leavesByCluster: Index<LeafIngress>
    readonly balancers: Index<DNSLoadBalancer>
    readonly endpoints: Index<DNSLoadBalancerEndpoint>
    readonly endpointsByRoot: Index<DNSLoadBalancerEndpoint>
    readonly records: Index<DNSEndpoint>
  }

  constructor(deps: CachedHostsDeps) {
    this.#deps = deps
    const { informers, publish } = deps
    const uidOf = ({ metadata }: Immutable<Obj>): string[] => [metadata.labels?.[ROOT_UID_LABEL] ?? '']
    this.#index = {
      globals: informers.index(GlobalIngress, 'page-host', hostsOf),
      globalsByUid: informers.index(GlobalIngress, 'page-root', ({ spec }) => [spec.rootRef.uid]),
      leaves: informers.index(LeafIngress, 'page-root', uidOf),
      leavesByCluster: informers.index(LeafIngress, 'page-cluster', ({ spec }) => [spec.cluster]),
      balancers: informers.index(DNSLoadBalancer, 'page-host', (object) => [hostOf(object)]),
      endpoints: informers.index(DNSLoadBalancerEndpoint, 'page-balancer', (object) => [balancerKeyOf(object)]),
      endpointsByRoot: informers.index(DNSLoadBalancerEndpoint, 'page-root', uidOf),
      records: informers.index(DNSEndpoint, 'page-host', namesOf),
    }
    this.#decider = publish === undefined ? undefined : createSourceDecider(informers, publish)
  }

  /** Watches until the returned function is called. `onDirty` is called at each change. */
  start(onDirty: () => void): () => void {
    this.#listener = onDirty
    const { hasFleet, hasBalance, publish, endpointScope } = this.#deps
    const stops: (() => void)[] = []
    const watch = <T extends Obj>(
      kind: Kind<T>,
      naming: (object: Immutable<T>) => readonly string[],
      about: (object: Immutable<T>) => readonly string[] = () => [],
      scope: { readonly namespace?: string } = {},
    ): Informer<T> => {
      const informer = this.#deps.informers.informer(kind, scope)
      this.#watched.push(informer)
      stops.push(
        informer.subscribe((change: Change<T>) => {
          const before = change.type === 'updated' ? [change.old] : change.type === 'deleted' ? [change.object] : []
          const after = change.type === 'deleted' ? [] : [change.object]
          for (const object of before) this.#count(naming(object), -1)
          for (const object of after) this.#count(naming(object), 1)
          for (const object of [...before, ...after]) this.#mark(about(object))
        }),
      )
      return informer
    }
    if (hasFleet) {
      watch(Cluster, none, (object) => this.#touchCluster(object.metadata.name ?? ''))
      watch(GlobalIngress, ({ spec }) => spec.hosts.map(({ host }) => host))
      watch(LeafIngress, none, (object) => {
        this.#dirtyClusters.add(object.spec.cluster)
        return this.#hostsOfRoot(object.metadata.labels?.[ROOT_UID_LABEL])
      })
      watch(HostClaim, none, ({ spec }) => [spec.host])
      stops.push(this.#watchAddresses())
    }
    if (hasFleet || hasBalance) {
      watch(DNSLoadBalancer, (object) => [hostOf(object)].filter(isHost))
      watch(DNSLoadBalancerEndpoint, none, (object) => {
        const balancer = this.#read(() => this.#deps.informers.get(DNSLoadBalancer, balancerKeyOf(object)))
        const hosts = balancer === undefined ? [] : [hostOf(balancer)]
        return [...hosts, ...this.#hostsOfRoot(object.metadata.labels?.[ROOT_UID_LABEL])]
      })
    }
    for (const source of publish?.sources ?? []) {
      if (source === 'Gateway') continue
      watch(sourceKindToken(source), (object) => readAlone(source, object).hosts.map(normalizeHost).filter(isHost))
      stops.push(this.#watchSources(source))
    }
    if (publish?.children.includes('Certificate') === true)
      this.#certificates = watch(Certificate, none, ({ spec }) => spec.dnsNames.map(normalizeHost))
    watch(DNSEndpoint, (object) => namesOf(object).filter(isHost), none, endpointScope)
    return () => {
      for (const stop of stops) stop()
    }
  }

  /** Resolves when each kind was read once, or is known to be absent or not allowed. */
  async synced(signal: AbortSignal): Promise<void> {
    for (const informer of this.#watched) await untilRead(informer, signal)
  }

  names(): Iterable<string> {
    return new Set([...this.#names.keys(), ...this.#kept])
  }

  has(host: string): boolean {
    return this.#names.has(host) || this.#kept.has(host)
  }

  /** Names whose deletion is held: they are hosts also while nothing names them. */
  keep(names: Iterable<string>): void {
    const before = this.#kept
    this.#kept = new Set([...names].filter(isHost))
    this.#mark([...before].filter((name) => !this.#kept.has(name)))
    this.#mark([...this.#kept].filter((name) => !before.has(name)))
  }

  /** Hosts whose facts may have changed since the last call, also those that are gone. */
  takeDirty(): { readonly hosts: ReadonlySet<string>; readonly clusters: ReadonlySet<string> } {
    const taken = { hosts: new Set(this.#dirty), clusters: new Set(this.#dirtyClusters) }
    this.#dirty.clear()
    this.#dirtyClusters.clear()
    return taken
  }

  /** The cluster whose leaves report the address; undefined: none, or several. */
  clusterOf(address: string): string | undefined {
    return this.#addresses.clusterOf(address)
  }

  /** What is not an object has changed: the records of a name, what is held of it. */
  touch(hosts: Iterable<string>): void {
    this.#mark([...hosts])
  }

  clusters(): readonly Immutable<Cluster>[] {
    return this.#deps.hasFleet ? (this.#read(() => this.#deps.informers.list(Cluster)) ?? []) : []
  }

  leavesOf(cluster: string): readonly Immutable<LeafIngress>[] {
    return this.#read(() => this.#deps.informers.by(this.#index.leavesByCluster, cluster)) ?? []
  }

  /** Undefined: nothing names the host. */
  factsOf(host: string, managed: Pick<ExplainFacts, 'manager'>, nowMs: number): CachedHost | undefined {
    if (!this.has(host)) return undefined
    const { informers, hasFleet } = this.#deps
    const globals = hasFleet ? (this.#read(() => informers.by(this.#index.globals, host)) ?? []) : []
    const balancer = this.#balancerOf(host)
    const endpoints =
      balancer === undefined ? [] : (this.#read(() => informers.by(this.#index.endpoints, keyOf(balancer))) ?? [])
    const published =
      balancer === undefined ? undefined : this.#read(() => informers.get(DNSEndpoint, recordsObjectName(balancer)))
    const balance = balancer === undefined ? undefined : balanceFactOf(balancer, endpoints, published)
    const leaves = globals.flatMap(
      ({ spec }) => this.#read(() => informers.by(this.#index.leaves, spec.rootRef.uid)) ?? [],
    )
    const trace = this.#traceOf(host, globals, leaves)
    const own = this.#ownFacts(host, managed, nowMs)
    const facts: CachedHost['facts'] = {
      ...own.facts,
      ...(balance !== undefined && { balance }),
      ...(trace !== undefined && fleetFacts(trace)),
    }
    const records = published ?? own.records
    return {
      facts,
      trace,
      balancer,
      endpoints,
      leaves,
      records,
      ttl: ttlOf(host, records, balance),
      ...this.#ownerOf(trace, balancer, own),
    }
  }

  #ownerOf(
    trace: HostTrace | undefined,
    balancer: Immutable<DNSLoadBalancer> | undefined,
    own: OwnFacts,
  ): Pick<CachedHost, 'by' | 'owner' | 'namespace'> {
    const [root] = trace?.roots ?? []
    if (trace !== undefined)
      return {
        by: 'fleet',
        owner: trace.owner ?? root?.root ?? '',
        namespace: root?.global.metadata.namespace ?? ownerNamespace(trace.owner),
      }
    if (balancer !== undefined)
      return {
        by: 'balance',
        owner: `DNSLoadBalancer ${keyOf(balancer)}`,
        namespace: balancer.metadata.namespace ?? '',
      }
    return { by: own.by, owner: own.owner, namespace: own.namespace }
  }

  #traceOf(
    host: string,
    globals: readonly Immutable<GlobalIngress>[],
    leaves: readonly Immutable<LeafIngress>[],
  ): HostTrace | undefined {
    if (globals.length === 0) return undefined
    const { informers } = this.#deps
    const claim = this.#read(() => informers.get(HostClaim, claimName(host)))
    const uids = new Set([
      ...globals.map(({ spec }) => spec.rootRef.uid),
      ...(claim?.spec.owners.slice(0, 1).map(({ uid }) => uid) ?? []),
    ])
    const endpoints = [...uids].flatMap((uid) => this.#read(() => informers.by(this.#index.endpointsByRoot, uid)) ?? [])
    const findCluster = (name: string) => this.#read(() => informers.get(Cluster, name))
    return traceOf(host, { globals, leaves, endpoints, findCluster, claim })
  }

  /** The load balancer that has the name. */
  #balancerOf(host: string): Immutable<DNSLoadBalancer> | undefined {
    const { informers, hasBalance, hasFleet } = this.#deps
    const naming = hasBalance || hasFleet ? (this.#read(() => informers.by(this.#index.balancers, host)) ?? []) : []
    if (naming.length < 2) return naming[0]
    const name = canonicalName(host)
    const holder = isInvalid(name) ? undefined : claimNames(naming, BALANCE_DEFAULTS).get(name)
    return naming.find((object) => keyOf(object) === holder)
  }

  /** Of a source of publish, or of a DNSEndpoint without one. */
  #ownFacts(host: string, managed: Pick<ExplainFacts, 'manager'>, nowMs: number): OwnFacts {
    const { informers, publish } = this.#deps
    const isPublishOn = publish !== undefined
    const decided = this.#decide(host)
    const chosen = choose(host, decided, isPublishOn)
    if (chosen === undefined) {
      const direct = directEndpointOf(host, (name) => this.#read(() => informers.by(this.#index.records, name)) ?? [])
      if (direct !== undefined) {
        const records = this.#read(() => informers.get(DNSEndpoint, direct.name))
        const owner = records === undefined ? undefined : findOwner(records)
        return {
          facts: { isPublishOn, ...directFacts(host, direct), ...managed },
          by: host.startsWith('*.') ? 'wildcard' : 'records',
          owner: owner === undefined ? `DNSEndpoint ${direct.name}` : owner.replace('/', ' '),
          namespace: parseKey(direct.name).namespace ?? '',
          records,
        }
      }
    }
    const records = ownedEndpoint(chosen, host)
    const endpoint = records === undefined ? undefined : endpointFact(records, host)
    const source = (chosen ?? decided[0])?.source
    return {
      facts: {
        isPublishOn,
        ...sourceFacts(host, {
          decided,
          chosen,
          isPublishOn,
          certificate: this.#certificateOf(chosen, nowMs),
          endpoint,
        }),
        ...managed,
      },
      by: 'publish',
      owner: source === undefined ? '' : `${source.kind} ${source.namespace}/${source.name}`,
      namespace: source?.namespace ?? '',
      records,
    }
  }

  #certificateOf(chosen: HostDecision | undefined, nowMs: number): CertificateFact | undefined {
    // Of a kind that is not read, or not installed, nothing is known.
    if (this.#certificates?.hasSynced !== true || this.#certificates.state === 'absent') return undefined
    return certificateFact(chosen, (key) => this.#read(() => this.#deps.informers.get(Certificate, key)), nowMs)
  }

  #decide(host: string): HostDecision[] {
    const decider = this.#decider
    if (decider === undefined) return []
    const named = this.#sources.get(host) ?? []
    return [...(typeof named === 'string' ? [named] : named)].flatMap((text) => {
      const [kind = '', key = ''] = text.split(' ', 2)
      const found = this.#read(() => decider.decide(kind as SourceKind, key, 0))
      // That a former owner is gone is confirmed by live reads, which are not made here.
      return found === undefined ? [] : [{ held: undefined, ...found }]
    })
  }

  #watchSources(kind: SourceKind): () => void {
    const note = (object: Immutable<Obj>, isNamed: boolean): void => {
      const text = `${kind} ${keyOf(object)}`
      for (const host of readAlone(kind, object).hosts.map(normalizeHost)) {
        const known = this.#sources.get(host)
        if (known instanceof Set) {
          if (isNamed) known.add(text)
          else if (known.delete(text) && known.size === 0) this.#sources.delete(host)
        } else if (isNamed)
          this.#sources.set(host, known === undefined || known === text ? text : new Set([known, text]))
        else if (known === text) this.#sources.delete(host)
      }
    }
    return this.#deps.informers.informer(sourceKindToken(kind)).subscribe((change) => {
      if (change.type === 'updated') note(change.old, false)
      note(change.object, change.type !== 'deleted')
    })
  }

  #watchAddresses(): () => void {
    return this.#deps.informers.informer(LeafIngress).subscribe((change) => {
      const before = change.type === 'updated' ? change.old : change.type === 'deleted' ? change.object : undefined
      const after = change.type === 'deleted' ? undefined : change.object
      // Rare: the gateway of a cluster got another address. Any host may have it.
      if (this.#addresses.replace(before, after)) this.#mark([...this.#names.keys()])
    })
  }

  #hostsOfRoot(uid: string | undefined): string[] {
    if (uid === undefined || !this.#deps.hasFleet) return []
    return (this.#read(() => this.#deps.informers.by(this.#index.globalsByUid, uid)) ?? []).flatMap(hostsOf)
  }

  #touchCluster(name: string): string[] {
    this.#dirtyClusters.add(name)
    return this.leavesOf(name).flatMap(({ metadata }) => this.#hostsOfRoot(metadata.labels?.[ROOT_UID_LABEL]))
  }

  #count(hosts: readonly string[], by: 1 | -1): void {
    for (const host of new Set(hosts)) {
      const count = (this.#names.get(host) ?? 0) + by
      if (count > 0) this.#names.set(host, count)
      else this.#names.delete(host)
    }
    this.#mark(hosts)
  }

  #mark(hosts: readonly string[]): void {
    for (const host of hosts) this.#dirty.add(host)
    this.#listener()
  }

  /** Undefined before the first sync of a kind: it is not known yet. */
  #read<T>(read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (error instanceof NotSynced) return undefined
      throw error
    }
  }
}

interface OwnFacts extends Pick<CachedHost, 'facts' | 'by' | 'owner' | 'namespace' | 'records'> {}

const SYNC_POLL_MS = 20

async function untilRead(informer: Pick<Informer<Obj>, 'hasSynced' | 'failure'>, signal: AbortSignal): Promise<void> {
  await poll(() => (informer.hasSynced || isWithout(informer.failure?.reason) ? true : undefined), {
    clock: systemClock,
    intervalMs: SYNC_POLL_MS,
    signal,
  })
}

/** There is nothing to read: the kind is not installed, or may not be read. */
function isWithout(reason: string | undefined): boolean {
  return reason === 'denied' || reason === 'absent'
}

const none = (): readonly string[] => []

function balancerKeyOf({ metadata, spec }: Immutable<DNSLoadBalancerEndpoint>): string {
  return `${metadata.namespace ?? ''}/${spec.loadbalancer}`
}

function namesOf({ spec }: Immutable<DNSEndpoint>): string[] {
  const endpoints: readonly { readonly dnsName?: unknown }[] = spec?.endpoints ?? []
  const names = endpoints.flatMap(({ dnsName }) => (typeof dnsName === 'string' ? [normalizeHost(dnsName)] : []))
  return [...new Set(names)]
}

function ttlOf(
  host: string,
  records: Immutable<DNSEndpoint> | undefined,
  balance: BalanceFact | undefined,
): number | undefined {
  const own = records?.spec.endpoints.find(({ dnsName }) => normalizeHost(dnsName) === host)
  return own?.recordTTL ?? balance?.ttl
}

/** `Ingress shop/web` → `shop` */
function ownerNamespace(owner: string | undefined): string {
  return /^\S+ ([^/]+)\//.exec(owner ?? '')?.[1] ?? ''
}
