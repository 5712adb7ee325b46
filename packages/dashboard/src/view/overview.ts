/**
 * The state of the page, kept up to date by what changed: `update` judges the hosts that something changed of, and returns the
 * difference to the version before. Its cost follows the number of changes, not of hosts or viewers.
 *
 * Guarantees: `applyDifference(state before, update())` is `state` after; a version names one state of one process.
 */
import {
  type CachedHost,
  type CachedHosts,
  canonicalName,
  isInvalid,
  isObjectScope,
  type Reason,
} from '@seamark/operator'
import {
  API_VERSION,
  type ClusterView,
  type HostView,
  type ManagerView,
  MAX_NEEDS,
  type NeedView,
  type State,
  type ZoneView,
} from '../api/state.ts'
import { byHarm, byName, type Difference, type Keyed } from '../api/stream.ts'
import { nextChangeMs } from './bands.ts'
import { ClusterBook } from './cluster-book.ts'
import { clusterView, numbersOf } from './cluster-view.ts'
import type { EventLog } from './event-log.ts'
import { judgeHost, type JudgedHost, undeclaredView } from './host-view.ts'
import { type HeldItem, needOfCluster, needOfHost, needOfZone, needsOfHeld, needsOfManager } from './needs.ts'
import { type OwnZones, textOf } from './own-zones.ts'
import type { TrafficRates } from './traffic.ts'

export interface OverviewDeps {
  readonly hosts: CachedHosts
  /** Undefined: no DNS server in this process. */
  readonly zones: OwnZones | undefined
  readonly log: EventLog
  readonly traffic?: TrafficRates
  /** Without the age of the data, which each beat of the stream has. */
  readonly manager: () => ManagerView
  /** There is no provider but our own server. */
  readonly hasOnlyOwnZones: boolean
  /** Distinguishes this process from others. */
  readonly epoch: string
  readonly now: () => number
}

/** A mass deletion is held within seconds. */
const MAX_GONE = 20_000
/** Within so long a change is written, unless something is wrong. */
const PENDING_MS = 10_000

/** Zones of other providers, as their stored state shows them. */
export interface OtherZone {
  readonly name: string
  readonly provider: string
  readonly records: number
}

/** What is compared, shown and removed by its name. */
type Shelf<T> = Map<string, T>

export class Overview {
  readonly #deps: OverviewDeps
  readonly #hosts: Shelf<HostView> = new Map()
  readonly #clusters: Shelf<ClusterView> = new Map()
  readonly #zones: Shelf<ZoneView> = new Map()
  readonly #needs: Shelf<NeedView> = new Map()
  /** Of everything but hosts. */
  readonly #otherNeeds = new Map<string, NeedView>()
  /** Hosts that need somebody, with their Certificate: what they need is read from them, of those that are shown. */
  readonly #needing = new Map<string, string>()
  /** Of no single host, cluster or zone. */
  #wholeNeeds: readonly NeedView[] = []
  /** The most harmful of them; undefined: a host has changed. */
  #needsOfHosts: readonly NeedView[] | undefined
  /** The JSON of hosts that somebody has asked for. */
  #hostTexts = new WeakMap<HostView, string>()
  readonly #book = new ClusterBook()
  /** Host → when it changes by time alone. */
  readonly #timed = new Map<string, number>()
  /** Hosts that nothing declares any more, oldest first. */
  readonly #gone = new Map<string, HostView>()
  /** Since when a host is in a state that its objects do not date, where this process saw it begin. */
  readonly #since = new Map<string, { readonly key: string; readonly at: string }>()
  #held: readonly HeldItem[] = []
  #heldByName: ReadonlyMap<string, readonly HeldItem[]> = new Map()
  #otherZones: readonly OtherZone[] = []
  #manager = ''
  #number = 0
  #needsTotal = 0
  #answeredBefore = 0
  #isFirst = true
  #changedAt: string | undefined
  #state: State | undefined
  /** Of the next difference. */
  #pending = newPending()

  constructor(deps: OverviewDeps) {
    this.#deps = deps
  }

  get version(): string {
    return `${this.#deps.epoch}.${this.#number}`
  }

  /** What guards hold now, and the zones of other providers. */
  setHeld(held: readonly HeldItem[], otherZones: readonly OtherZone[]): void {
    const before = this.#heldByName
    this.#held = held
    this.#otherZones = otherZones
    this.#heldByName = groupByName(held)
    const touched = [...new Set([...before.keys(), ...this.#heldByName.keys()])].filter(
      (name) => JSON.stringify(before.get(name)) !== JSON.stringify(this.#heldByName.get(name)),
    )
    const isDeletion = ({ change }: HeldItem): boolean => change.op === 'delete'
    this.#deps.hosts.keep([...this.#heldByName].flatMap(([name, items]) => (items.some(isDeletion) ? [name] : [])))
    this.#deps.hosts.touch(touched)
  }

  get held(): readonly HeldItem[] {
    return this.#held
  }

  /** The verdict as it is now, for the page of the host. */
  judge(name: string): { readonly cached: CachedHost; readonly judged: JudgedHost } | undefined {
    const { hosts, zones, hasOnlyOwnZones, manager, now } = this.#deps
    const { mode, pausedBy } = manager()
    const nowMs = now()
    const cached = hosts.factsOf(name, { manager: { mode, isPaused: pausedBy.length > 0 } }, nowMs)
    if (cached === undefined) return undefined
    const held = (this.#heldByName.get(name) ?? []).map(({ change }) => change)
    const judged = judgeHost({
      host: cached,
      zone: zones?.of(name),
      held,
      clusterOf: (address) => hosts.clusterOf(address),
      ...(hasOnlyOwnZones && zones !== undefined && { onlyZones: zones.names }),
      nowMs,
    })
    const view = cached.owner === '' ? undeclaredView(judged.view, this.#formerOf(name)) : judged.view
    return { cached, judged: { ...judged, view: this.#dated(view) } }
  }

  /** Something changed that nobody is told of: a zone, or a host by time alone. */
  isDue(): boolean {
    const nowMs = this.#deps.now()
    return this.#deps.zones?.hasChanged() === true || [...this.#timed.values()].some((atMs) => atMs <= nowMs)
  }

  /**
   * Judges hosts that something changed of, for about so long. True: there are more. For thousands at once, between which the
   * process does other things.
   */
  prepare(budgetMs: number): boolean {
    const { hosts, zones, now } = this.#deps
    const changes = zones?.takeChanges()
    if (changes !== undefined) this.#touchZones(changes)
    const dirty = hosts.takeDirty()
    for (const cluster of dirty.clusters) this.#pending.clusters.add(cluster)
    for (const name of dirty.hosts) this.#pending.names.add(name)
    const nowMs = now()
    for (const [name, atMs] of this.#timed) if (atMs <= nowMs) this.#pending.names.add(name)
    const endMs = performance.now() + budgetMs
    for (const name of this.#pending.names) {
      this.#pending.names.delete(name)
      this.#updateHost(name)
      if (performance.now() > endMs) break
    }
    return this.#pending.names.size > 0
  }

  /** Undefined: nothing changed. */
  update(): Difference | undefined {
    const { log, now } = this.#deps
    const nowMs = now()
    this.prepare(Number.POSITIVE_INFINITY)
    const { hosts: pendingHosts, clusters: touchedClusters, changed } = this.#pending
    for (const cluster of this.#deps.traffic?.take(nowMs) ?? []) touchedClusters.add(cluster)
    const hostChange = keyed(pendingHosts)
    this.#pending = newPending()
    if (!this.#isFirst) log.hostsChanged(changed, nowMs)
    const isEach = this.#book.answeredHosts !== this.#answeredBefore
    this.#answeredBefore = this.#book.answeredHosts
    const clusters = this.#updateClusters(isEach ? undefined : touchedClusters, nowMs)
    const zoneChange = this.#updateZones(nowMs)
    const managerView = this.#deps.manager()
    const needsBefore = this.#needsTotal
    const needs = this.#updateNeeds(managerView)
    const events = log.take()
    const { data: _, ...shown } = managerView
    const managerText = JSON.stringify(shown)
    const isManagerChanged = managerText !== this.#manager
    this.#manager = managerText
    const parts = {
      ...(isManagerChanged && { manager: managerView }),
      ...(isChange(clusters) && { clusters }),
      ...(isChange(hostChange) && { hosts: hostChange }),
      ...(isChange(zoneChange) && { zones: zoneChange }),
      ...(isChange(needs) && { needsYou: needs }),
      ...((isChange(needs) || this.#needsTotal !== needsBefore) && { needsYouTotal: this.#needsTotal }),
      ...(events.length > 0 && { events }),
    }
    const wasFirst = this.#isFirst
    this.#isFirst = false
    if (Object.keys(parts).length === 0) return undefined
    const base = this.version
    this.#number++
    this.#state = undefined
    const isSeen = isChange(hostChange) || isChange(clusters) || isChange(zoneChange) || isChange(needs)
    if (!wasFirst && isSeen) this.#changedAt = new Date(nowMs).toISOString()
    return {
      base,
      version: this.version,
      ...parts,
      ...(this.#changedAt !== undefined && { changedAt: this.#changedAt }),
    }
  }

  /** With the age of the data as it is now. */
  state(): State {
    this.#state ??= {
      apiVersion: API_VERSION,
      kind: 'State',
      version: this.version,
      manager: this.#deps.manager(),
      clusters: sorted(this.#clusters),
      hosts: sorted(this.#hosts),
      zones: sorted(this.#zones),
      needsYou: [...this.#needs.values()].sort(byHarm),
      needsYouTotal: this.#needsTotal,
      lastHour: this.#deps.log.events,
      ...(this.#changedAt !== undefined && { changedAt: this.#changedAt }),
    }
    return { ...this.#state, manager: this.#deps.manager() }
  }

  /** The JSON of a host of `state`: serialised once, for all viewers. */
  hostText(host: HostView): string {
    let text = this.#hostTexts.get(host)
    if (text === undefined) this.#hostTexts.set(host, (text = JSON.stringify(host)))
    return text
  }

  /** Nobody looks. */
  forgetTexts(): void {
    this.#hostTexts = new WeakMap()
  }

  findHost(name: string): HostView | undefined {
    return this.#hosts.get(name)
  }

  /** All of them, also those that `state` cuts. */
  needs(): NeedView[] {
    const ofHosts = [...this.#needing.keys()].flatMap((name) => this.#needOf(name) ?? [])
    return [...this.#wholeNeeds, ...this.#otherNeeds.values(), ...ofHosts].sort(byHarm)
  }

  /** The clusters with the numbers of some hosts only; `leaf`: whether a leaf is one of theirs. */
  clustersOf(
    isSeen: (host: HostView) => boolean,
    leaf: (leaf: { readonly namespace: string }) => boolean,
  ): ClusterView[] {
    const book = this.#book.narrowed((name) => {
      const host = this.findHost(name)
      return host !== undefined && isSeen(host)
    })
    return sorted(this.#clusters).map((view) => {
      const { traffic: _, ...cluster } = view
      const leaves = this.#deps.hosts
        .leavesOf(cluster.name)
        .filter(({ metadata }) => leaf({ namespace: metadata.namespace ?? '' })).length
      return { ...cluster, ...numbersOf(book.of(cluster.name), book.answeredHosts), leaves }
    })
  }

  #updateHost(name: string): void {
    const { hosts: change, clusters, changed } = this.#pending
    this.#timed.delete(name)
    const found = this.judge(name)
    const view = found?.judged.view
    const before = this.#hosts.get(name)
    const touched = this.#book.set(
      name,
      found === undefined ? undefined : { cached: found.cached, view: found.judged.view },
    )
    for (const cluster of touched) clusters.add(cluster)
    this.#needsOfHosts = undefined
    const pendingMs = view === undefined ? undefined : this.#pendingUntilMs(view)
    const certificate = found?.cached.facts.certificate
    if (view !== undefined && pendingMs === undefined && needOfHost(view, certificate) !== undefined)
      this.#needing.set(name, certificate?.name ?? '')
    else this.#needing.delete(name)
    if (view === undefined) {
      if (before !== undefined) this.#gone.set(name, before)
      for (const first of this.#gone.keys()) if (this.#gone.size > MAX_GONE) this.#gone.delete(first)
      this.#since.delete(name)
      remove(this.#hosts, change, name)
      return
    }
    this.#gone.delete(name)
    const { changesAtMs = Infinity } = found?.cached.facts.certificate ?? {}
    const atMs = Math.min(nextChangeMs(view.answers), changesAtMs, pendingMs ?? Infinity)
    if (atMs !== Infinity) this.#timed.set(name, atMs)
    if (set(this.#hosts, change, name, view) && before !== undefined) changed.push([before, view])
  }

  /** As it was when something declared it: that its deletion is held is known a little later. */
  #formerOf(name: string): HostView | undefined {
    return this.findHost(name) ?? this.#gone.get(name)
  }

  /** A change that is being written needs nobody; undefined: it takes too long, or there is none. */
  #pendingUntilMs({ reason, since }: HostView): number | undefined {
    if (reason !== ('ChangePending' satisfies Reason) || since === undefined) return undefined
    const untilMs = Date.parse(since) + PENDING_MS
    return untilMs > this.#deps.now() ? untilMs : undefined
  }

  /** What the objects do not date has been so since this process saw it. */
  #dated(view: HostView): HostView {
    if (view.since !== undefined) return view
    const key = stateKey(view)
    const known = this.#since.get(view.name)
    if (known?.key === key) return { ...view, since: known.at }
    const before = this.#hosts.get(view.name)
    // How long it was so before this process began is not known.
    if (before === undefined) return view
    if (stateKey(before) === key) return before.since === undefined ? view : { ...view, since: before.since }
    const at = new Date(this.#deps.now()).toISOString()
    this.#since.set(view.name, { key, at })
    return { ...view, since: at }
  }

  #touchZones({ names, zones }: { readonly names: ReadonlySet<string>; readonly zones: readonly string[] }): void {
    const { hosts } = this.#deps
    hosts.touch([...names].filter((name) => hosts.has(name)))
    if (zones.length === 0) return
    const isIn = (host: string): boolean => zones.some((zone) => host === zone || host.endsWith(`.${zone}`))
    hosts.touch([...hosts.names()].filter(isIn))
  }

  /** Undefined: each of them, because the number that shares are of has changed. */
  #updateClusters(touched: ReadonlySet<string> | undefined, nowMs: number): Keyed<ClusterView> {
    const { hosts, log } = this.#deps
    const change = newChange<ClusterView>()
    const present = new Set<string>()
    for (const cluster of hosts.clusters()) {
      const name = cluster.metadata.name ?? ''
      present.add(name)
      if (touched !== undefined && !touched.has(name)) continue
      const before = this.#clusters.get(name)
      const traffic = this.#deps.traffic?.of(name)
      const judged = clusterView({
        cluster,
        leaves: hosts.leavesOf(name),
        totals: this.#book.of(name),
        answeredHosts: this.#book.answeredHosts,
        ...(traffic !== undefined && { traffic }),
      })
      const view = this.#isFirst ? judged : sinceSeen(judged, before, nowMs)
      if (!set(this.#clusters, change, name, view)) continue
      if (!this.#isFirst) log.clusterChanged(before, view, nowMs)
      this.#note(`cluster/${name}`, needOfCluster(view))
    }
    for (const name of this.#clusters.keys()) {
      if (present.has(name)) continue
      remove(this.#clusters, change, name)
      this.#note(`cluster/${name}`, undefined)
    }
    return keyed(change)
  }

  #updateZones(nowMs: number): Keyed<ZoneView> {
    const change = newChange<ZoneView>()
    const heldIn = (zone: string): number => this.#held.filter(({ scope }) => scope === zone).length
    const own = this.#deps.zones?.views(heldIn, nowMs) ?? []
    const names = new Set(own.map(({ name }) => name))
    const others = this.#otherZones
      .filter(({ name }) => !names.has(name))
      .map((zone) => ({ ...zone, isServed: true, held: heldIn(zone.name) }))
    const all = [...own, ...others]
    for (const view of all) {
      set(this.#zones, change, view.name, view)
      this.#note(`zone/${view.name}`, needOfZone(view))
    }
    const present = new Set(all.map(({ name }) => name))
    for (const name of this.#zones.keys()) {
      if (present.has(name)) continue
      remove(this.#zones, change, name)
      this.#note(`zone/${name}`, undefined)
    }
    return keyed(change)
  }

  #updateNeeds(manager: ManagerView): Keyed<NeedView> {
    const whole = [...needsOfHeld(this.#held), ...needsOfManager(manager)]
    this.#wholeNeeds = whole
    this.#needsTotal = whole.length + this.#otherNeeds.size + this.#needing.size
    const first = [...whole, ...this.#otherNeeds.values(), ...(this.#needsOfHosts ??= this.#firstNeedsOfHosts())]
      .sort(byHarm)
      .slice(0, MAX_NEEDS)
    const change = newChange<NeedView>()
    for (const need of first) set(this.#needs, change, need.id, need)
    const present = new Set(first.map(({ id }) => id))
    for (const id of this.#needs.keys()) if (!present.has(id)) remove(this.#needs, change, id)
    return keyed(change)
  }

  /** As many as are shown at most. */
  #firstNeedsOfHosts(): NeedView[] {
    const ranked = [...this.#needing.keys()].flatMap((name) => {
      const host = this.#hosts.get(name)
      return host === undefined ? [] : [{ host, severity: host.state, since: host.since, id: name }]
    })
    return ranked
      .sort(byHarm)
      .slice(0, MAX_NEEDS)
      .flatMap(({ id }) => this.#needOf(id) ?? [])
  }

  #needOf(name: string): NeedView | undefined {
    const host = this.#hosts.get(name)
    const certificate = this.#needing.get(name)
    return host && needOfHost(host, certificate === undefined || certificate === '' ? undefined : { name: certificate })
  }

  #note(key: string, need: NeedView | undefined): void {
    if (need === undefined) this.#otherNeeds.delete(key)
    else this.#otherNeeds.set(key, need)
  }
}

function stateKey({ state, reason = '' }: HostView): string {
  return `${state} ${reason}`
}

/** What no condition dates, such as the health of its addresses, has been so since this process saw it. */
function sinceSeen(view: ClusterView, before: ClusterView | undefined, nowMs: number): ClusterView {
  if (view.since !== undefined) return view
  const isSame = before?.state === view.state && before.reason === view.reason
  const since = isSame ? before.since : new Date(nowMs).toISOString()
  return since === undefined ? view : { ...view, since }
}

interface Pending {
  readonly names: Set<string>
  readonly hosts: Change<HostView>
  readonly clusters: Set<string>
  readonly changed: [before: HostView, after: HostView][]
}

function newPending(): Pending {
  return { names: new Set(), hosts: newChange(), clusters: new Set(), changed: [] }
}

/** What came and went, changed twice, … is what it is in the end. */
interface Change<T> {
  readonly set: Map<string, T>
  readonly removed: Set<string>
}

function newChange<T>(): Change<T> {
  return { set: new Map(), removed: new Set() }
}

function keyed<T>({ set: items, removed }: Change<T>): Keyed<T> {
  return { set: [...items.values()], removed: [...removed] }
}

function isChange({ set: items, removed }: Keyed<unknown>): boolean {
  return items.length > 0 || removed.length > 0
}

/** Whether it differs from what was there. */
function set<T>(shelf: Shelf<T>, change: Change<T>, key: string, item: T): boolean {
  const before = shelf.get(key)
  if (before !== undefined && JSON.stringify(before) === JSON.stringify(item)) return false
  shelf.set(key, item)
  change.set.set(key, item)
  change.removed.delete(key)
  return true
}

function remove<T>(shelf: Shelf<T>, change: Change<T>, key: string): void {
  if (!shelf.delete(key)) return
  change.set.delete(key)
  change.removed.add(key)
}

function sorted<T extends { readonly name: string }>(shelf: Shelf<T>): T[] {
  return [...shelf.values()].sort(byName)
}

/** Of records: those of objects have no host. */
function groupByName(held: readonly HeldItem[]): Map<string, HeldItem[]> {
  const byHost = new Map<string, HeldItem[]>()
  for (const item of held) {
    if (isObjectScope(item.scope)) continue
    const name = canonicalName(item.change.name)
    const host = textOf(isInvalid(name) ? item.change.name : name)
    byHost.set(host, [...(byHost.get(host) ?? []), item])
  }
  return byHost
}
