/** What of the state a reader may see. Pure. */
import {
  type ClusterView,
  type EventView,
  type HostView,
  type ManagerView,
  MAX_NEEDS,
  type NeedView,
  type ObjectRef,
  type State,
} from '../api/state.ts'
import type { Difference, Keyed } from '../api/stream.ts'
import type { Overview } from '../view/overview.ts'
import type { Question, Rights } from './rights.ts'

const RESOURCES = {
  fleet: 'globalingresses.seamark.io',
  balance: 'dnsloadbalancers.loadbalancer.gardener.cloud',
  publish: 'dnsendpoints.externaldns.k8s.io',
  wildcard: 'dnsendpoints.externaldns.k8s.io',
  records: 'dnsendpoints.externaldns.k8s.io',
} as const satisfies Record<HostView['by'], string>

const CLUSTERS: Question = { verb: 'list', resource: 'clusters.seamark.io' }
/** A zone has the records of every namespace. */
const ZONES: Question = { verb: 'list', resource: 'dnsendpoints.externaldns.k8s.io' }

function questionOf({ by, namespace }: Pick<HostView, 'by' | 'namespace'>): Question {
  return { verb: 'list', resource: RESOURCES[by], ...(namespace !== '' && { namespace }) }
}

/** Who may list these sees everything, and costs no more than one without a token. */
const EVERYTHING: readonly Question[] = [
  CLUSTERS,
  ...[...new Set(Object.values(RESOURCES))].map((resource): Question => ({ verb: 'list', resource })),
]

/** What has to be known to show this state. */
export function questionsOf(hosts: Iterable<HostView>): Question[] {
  const questions = new Map<string, Question>()
  for (const host of hosts) questions.set(`${host.by} ${host.namespace}`, questionOf(host))
  return [...EVERYTHING, ...questions.values()]
}

export function mayReadZones(rights: Rights): boolean {
  return rights.may(ZONES)
}

/** What all of them together show; readers of a part get what their part shows. */
export type Whole = Pick<Overview, 'findHost' | 'needs' | 'clustersOf'>

/** What the readers of a channel have, by name or id. */
export interface Shown {
  readonly hosts: Set<string>
  readonly clusters: Map<string, string>
  readonly needs: Map<string, string>
}

export class Visible {
  readonly #rights: Rights
  readonly #whole: Whole
  readonly isEverything: boolean

  constructor(rights: Rights, whole: Whole) {
    this.#rights = rights
    this.#whole = whole
    this.isEverything = EVERYTHING.every((question) => rights.may(question))
  }

  readonly host = (host: HostView): boolean => this.#rights.may(questionOf(host))

  readonly event = ({ host, cluster, object }: EventView): boolean => this.#about(host, cluster, object)

  readonly need = ({ host, cluster, zone, object }: Pick<NeedView, 'host' | 'cluster' | 'zone' | 'object'>): boolean =>
    zone === undefined ? this.#about(host, cluster, object) : mayReadZones(this.#rights)

  #about(host: string | undefined, cluster: string | undefined, { namespace }: ObjectRef): boolean {
    if (host !== undefined) {
      const view = this.#whole.findHost(host)
      return view === undefined ? mayReadZones(this.#rights) : this.host(view)
    }
    if (cluster !== undefined) return this.#rights.may(CLUSTERS)
    return mayReadZones(this.#rights) || (namespace !== undefined && this.#rights.may({ ...ZONES, namespace }))
  }

  state(state: State): State {
    if (this.isEverything) return state
    const { changedAt: _, manager, ...rest } = state
    const needs = this.#needs()
    const lastHour = state.lastHour.filter(this.event)
    const [newest] = lastHour
    return {
      ...rest,
      manager: withoutTraffic(manager),
      clusters: this.#clusters(),
      hosts: state.hosts.filter(this.host),
      zones: mayReadZones(this.#rights) ? state.zones : [],
      needsYou: needs.slice(0, MAX_NEEDS),
      needsYouTotal: needs.length,
      lastHour,
      ...(newest !== undefined && { changedAt: newest.at }),
    }
  }

  /** What its readers have after `state`. */
  shownOf({ hosts, clusters, needsYou }: State): Shown {
    const isPart = !this.isEverything
    return {
      hosts: new Set(isPart ? hosts.map(({ name }) => name) : []),
      clusters: new Map(isPart ? clusters.map((each) => [each.name, JSON.stringify(each)]) : []),
      needs: new Map(isPart ? needsYou.map((each) => [each.id, JSON.stringify(each)]) : []),
    }
  }

  /** `shown` is kept up to date. */
  difference(difference: Difference, shown: Shown): Difference {
    if (this.isEverything) return difference
    const { base, version, manager, changedAt, hosts, zones, events } = difference
    const seenHosts = narrow(hosts, ({ name }) => name, this.host, shown.hosts)
    const clusters = changes(this.#clusters(), ({ name }) => name, shown.clusters)
    const needs = this.#needs()
    const needsYou = changes(needs.slice(0, MAX_NEEDS), ({ id }) => id, shown.needs)
    const seenZones = mayReadZones(this.#rights) ? zones : undefined
    const seenEvents = events?.filter(this.event) ?? []
    const parts = {
      ...(seenHosts !== undefined && { hosts: seenHosts }),
      ...(clusters !== undefined && { clusters }),
      ...(seenZones !== undefined && { zones: seenZones }),
      ...(needsYou !== undefined && { needsYou, needsYouTotal: needs.length }),
    }
    // That something else changed is nothing that they see.
    const isChanged = Object.keys(parts).length > 0
    return {
      base,
      version,
      ...(manager !== undefined && { manager: withoutTraffic(manager) }),
      ...parts,
      ...(seenEvents.length > 0 && { events: seenEvents }),
      ...(isChanged && changedAt !== undefined && { changedAt }),
    }
  }

  #needs(): readonly NeedView[] {
    return this.#whole.needs().filter(this.need)
  }

  #clusters(): ClusterView[] {
    if (!this.#rights.may(CLUSTERS)) return []
    return this.#whole.clustersOf(this.host, (leaf) => this.#rights.may(questionOf({ by: 'fleet', ...leaf })))
  }
}

/** It is that of every host. */
function withoutTraffic(manager: ManagerView): ManagerView {
  const { traffic: _, ...rest } = manager
  return rest
}

/** From what is shown to `items`; undefined: nothing. */
function changes<T>(items: readonly T[], keyOf: (item: T) => string, shown: Map<string, string>): Keyed<T> | undefined {
  const texts = new Map(items.map((item) => [keyOf(item), JSON.stringify(item)]))
  const set = items.filter((item) => shown.get(keyOf(item)) !== texts.get(keyOf(item)))
  const removed = [...shown.keys()].filter((key) => !texts.has(key))
  shown.clear()
  for (const [key, text] of texts) shown.set(key, text)
  return set.length === 0 && removed.length === 0 ? undefined : { set, removed }
}

/** What may not be seen is removed where it was seen, and else not named at all. */
function narrow<T>(
  change: Keyed<T> | undefined,
  keyOf: (item: T) => string,
  isVisible: (item: T) => boolean,
  shown: Set<string>,
): Keyed<T> | undefined {
  if (change === undefined) return undefined
  const set = change.set.filter(isVisible)
  const hidden = change.set.filter((item) => !isVisible(item)).map(keyOf)
  const removed = [...change.removed, ...hidden].filter((key) => shown.delete(key))
  for (const item of set) shown.add(keyOf(item))
  return set.length === 0 && removed.length === 0 ? undefined : { set, removed }
}
