/**
 * What happened: the Events that this installation wrote, and what this process saw change since it runs. In memory; an hour, and
 * MAX_KEPT at most.
 */
import type { Event, Immutable } from '@seamark/kube'
import { type Reason, REASONS } from '@seamark/operator'
import { type ClusterView, type EventView, type HostView, MAX_EVENTS } from '../api/state.ts'
import { mergeEvents } from '../api/stream.ts'
import { refOf } from './needs.ts'

/** Reports of other programs are not history of this one. */
const OUR_CONTROLLERS = /^(seamark|contour-plus|dnslb)/
/** Hosts with a change that is on its way. */
const MAX_SETTLED = 1_000
/** Of one pass; the others are one line. */
const MAX_AT_ONCE = 20

const HELD: ReadonlySet<string> = new Set<Reason>([
  'DeleteBudgetSpent',
  'GuardTripped',
  'Quarantined',
  'RetargetBreakerOpen',
  'ShrinkBreakerOpen',
])
const COMMANDS: ReadonlySet<string> = new Set<Reason>([
  'ApprovalExpired',
  'ApprovalUnknown',
  'ApprovalUsed',
  'ClusterDraining',
  'ConfigurationChanged',
  'HeldChangesApproved',
  'ModeChanged',
  'Paused',
  'ReleaseDeprecated',
  'Resumed',
])

export class EventLog {
  #events: readonly EventView[] = []
  #added: EventView[] = []
  #count = 0
  /** What hosts were before a change of them was on its way: that one is under way is no verdict. */
  readonly #settled = new Map<string, HostView>()

  /** Newest first. */
  get events(): readonly EventView[] {
    return this.#events
  }

  /** Those that are new or changed since the last call. */
  take(): readonly EventView[] {
    const added = this.#added
    this.#added = []
    return added.slice(-MAX_EVENTS)
  }

  /** An Event of the API server. */
  note(event: Immutable<Event>): void {
    if (!isOurs(event)) return
    const at = event.series?.lastObservedTime ?? event.eventTime
    const { kind = '', name = '', namespace } = event.regarding ?? {}
    const reason = event.reason ?? ''
    this.#add({
      id: event.metadata.uid ?? `${event.metadata.namespace}/${event.metadata.name}`,
      at: toSeconds(at),
      what: HELD.has(reason) ? 'held' : COMMANDS.has(reason) ? 'command' : 'change',
      severity: event.type === 'Warning' ? 'warning' : 'normal',
      reason,
      object: { kind, name, ...(namespace !== undefined && { namespace }) },
      text: event.note ?? '',
      ...(kind === 'Cluster' && { cluster: name }),
      ...(event.series !== undefined && { count: event.series.count }),
    })
  }

  hostsChanged(changes: readonly (readonly [before: HostView, after: HostView])[], nowMs: number): void {
    const at = new Date(nowMs).toISOString()
    const found = changes.flatMap(([before, after]) => this.#changesOf(before, after, at))
    for (const event of found.slice(0, MAX_AT_ONCE)) this.#add(event)
    const more = found.length - MAX_AT_ONCE
    const last = found[MAX_AT_ONCE]
    if (last !== undefined)
      this.#add({ ...last, id: this.#nextId(), text: more === 1 ? last.text : `${last.text}; and ${more - 1} more` })
  }

  clusterChanged(before: ClusterView | undefined, after: ClusterView, nowMs: number): void {
    if (before === undefined || before.state === after.state) return
    const isAskedFor = after.state === 'Draining'
    const isBad = after.state === 'Unreachable' || after.state === 'Unhealthy'
    this.#add({
      id: this.#nextId(),
      at: new Date(nowMs).toISOString(),
      what: isAskedFor ? 'command' : 'verdict',
      severity: isBad ? 'warning' : 'normal',
      reason: after.reason ?? after.state,
      object: { kind: 'Cluster', name: after.name },
      text: `${after.name} is ${after.state}: ${after.text}`,
      cluster: after.name,
    })
  }

  #changesOf(before: HostView, after: HostView, at: string): EventView[] {
    const about = { at, object: refOf(after.owner) ?? { kind: 'Host', name: after.name }, host: after.name }
    const events: EventView[] = []
    const settled = this.#settled.get(after.name) ?? before
    const isPending = after.reason === ('ChangePending' satisfies Reason)
    this.#settled.delete(after.name)
    if (isPending) this.#settled.set(after.name, settled)
    // Hosts that are gone meanwhile are not told of here.
    for (const name of this.#settled.keys()) if (this.#settled.size > MAX_SETTLED) this.#settled.delete(name)
    if (!isPending && (settled.state !== after.state || settled.reason !== after.reason))
      events.push({
        ...about,
        id: this.#nextId(),
        what: 'verdict',
        severity: after.state === 'as it should be' ? 'normal' : 'warning',
        reason: after.reason ?? ('Published' satisfies Reason),
        text: after.text.split('\n')[0] ?? '',
      })
    const [was, is] = [before, after].map(answered)
    if (was !== is && after.answersFrom !== 'published')
      events.push({
        ...about,
        id: this.#nextId(),
        what: 'verified',
        severity: 'normal',
        reason: 'AnswerChanged' satisfies Reason,
        text: `${after.name} answers ${is === '' ? 'nothing' : is}; before: ${was === '' ? 'nothing' : was}`,
      })
    return events
  }

  #nextId(): string {
    return `seen-${String(++this.#count).padStart(9, '0')}`
  }

  #add(event: EventView): void {
    this.#added.push(event)
    this.#events = mergeEvents(this.#events, [event])
  }
}

/** The cached projection: of the Events of others nothing is kept but their names. */
export function trimEvent(event: Event): Event {
  if (isOurs(event)) return event
  const { name, namespace, uid, resourceVersion } = event.metadata
  const metadata = { ...(name !== undefined && { name }), ...(namespace !== undefined && { namespace }) }
  return {
    metadata: {
      ...metadata,
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
    eventTime: '',
  }
}

function isOurs({ reportingController = '', reason = '' }: Immutable<Event>): boolean {
  return OUR_CONTROLLERS.test(reportingController) && Object.hasOwn(REASONS, reason)
}

function answered({ answers }: HostView): string {
  return answers.flatMap(({ address, share }) => (share > 0 ? [address] : [])).join(', ')
}

/** Events have microseconds. */
function toSeconds(time: string): string {
  const ms = Date.parse(time)
  return Number.isNaN(ms) ? time : new Date(ms).toISOString()
}
