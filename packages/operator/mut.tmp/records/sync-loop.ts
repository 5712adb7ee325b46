/**
 * Keeps zones as DNSEndpoints want them. Level-triggered: events only say which names to look at again.
 *
 * Flow: a DNSEndpoint changes → its names, old and new, are dirty → after a short pause one plan about those names →
 * executor → Events and observedGeneration. Every ten minutes, and at the start, the whole zone is planned: drift, and
 * what was held, are looked at again.
 * Guarantees: nothing here throws for a provider or a bad object; a pass that failed is repeated with its names; while
 * the kill switch is pulled nothing is written, neither DNS nor Kubernetes.
 */
import { type Client, type Clock, type Informer, type Logger, messageOf, sleep, systemClock } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import type { Reason } from '../reasons.ts'
import { sourceOf, wishesOf, type Wishes } from './dns-endpoint-source.ts'
import type { Engine, Planned } from './engine.ts'
import { failuresOf, type Outcome } from './executor.ts'
import type { KillSwitch } from './kill-switch.ts'
import type { Plan } from './plan.ts'
import { canonicalName, isInvalid } from './record-set.ts'
import { parseSelector } from './selector.ts'
import { checkSources } from './source-check.ts'

type Endpoint = Immutable<DNSEndpoint>

export interface SyncLoopOptions {
  readonly client: Client
  readonly informer: Informer<DNSEndpoint>
  readonly engine: Engine
  readonly killSwitch: KillSwitch
  readonly defaultTtl: number
  /** As ExternalDNS' --annotation-filter. @default everything */
  readonly annotationFilter?: string
  /** Names and zones that somebody let go. */
  readonly released?: () => ReadonlySet<string>
  readonly log: Logger
  readonly clock?: Clock
  /** One per set and code that changed. */
  readonly onRefused?: (
    refusal: { name: string; type: string; code: Reason; why: string; source: string },
    object: Endpoint | undefined,
  ) => void
  readonly onApplied?: (outcome: Outcome) => void
  readonly isWriting: boolean
}

const DEBOUNCE_MS = 200
const RESYNC_MS = 600_000
const RETRY_MS = 15_000

export async function runSyncLoop(options: SyncLoopOptions, signal: AbortSignal): Promise<void> {
  await new SyncLoop(options).run(signal)
}

class SyncLoop {
  readonly #options: SyncLoopOptions
  readonly #clock: Clock
  readonly #objects = new Map<string, Endpoint>()
  readonly #byName = new Map<string, Set<string>>()
  readonly #isServed: (annotations: Readonly<Record<string, string>>) => boolean
  /** What was last said about a set, so that it is said once. */
  readonly #said = new Map<string, string>()
  #dirty: Set<string> | 'all' = 'all'
  #wake: () => void = () => undefined

  constructor(options: SyncLoopOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    const selector = parseSelector(options.annotationFilter ?? '')
    if (isInvalid(selector)) throw new RangeError(`annotation filter: ${selector.invalid}`)
    this.#isServed = selector
  }

  async run(signal: AbortSignal): Promise<void> {
    const { informer, killSwitch } = this.#options
    await informer.synced(signal).catch(() => undefined)
    if (signal.aborted) return
    const stops = [
      informer.subscribe((change) => this.#note(change.type === 'deleted' ? undefined : change.object, change.object)),
      killSwitch.subscribe(() => this.#markAll()),
    ]
    try {
      let resyncAt = this.#clock.monotonic() + RESYNC_MS
      while (!signal.aborted) {
        if (this.#dirty === 'all' || this.#dirty.size > 0) {
          await sleep(this.#clock, DEBOUNCE_MS, signal)
          if (!signal.aborted) await this.#pass(signal)
        }
        if (this.#clock.monotonic() >= resyncAt) {
          resyncAt = this.#clock.monotonic() + RESYNC_MS
          this.#markAll()
        }
        await this.#untilWoken(resyncAt - this.#clock.monotonic(), signal)
      }
    } finally {
      for (const stop of stops) stop()
    }
  }

  #note(now: Endpoint | undefined, object: Endpoint): void {
    const key = object.metadata.uid ?? ''
    const names = new Set([...namesOf(this.#objects.get(key)), ...namesOf(object)])
    const isServed = now !== undefined && this.#isServed(now.metadata.annotations ?? {})
    if (isServed) this.#objects.set(key, now)
    else this.#objects.delete(key)
    const kept = isServed ? namesOf(now) : new Set<string>()
    for (const name of names) {
      const keys = this.#byName.get(name) ?? new Set()
      if (kept.has(name)) keys.add(key)
      else keys.delete(key)
      if (keys.size > 0) this.#byName.set(name, keys)
      else this.#byName.delete(name)
      if (this.#dirty !== 'all') this.#dirty.add(name)
    }
    this.#wake()
  }

  #markAll(): void {
    this.#dirty = 'all'
    this.#wake()
  }

  async #untilWoken(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#dirty === 'all' || this.#dirty.size > 0) return
    const woken = new AbortController()
    const wake = () => woken.abort()
    this.#wake = wake
    signal.addEventListener('abort', wake, { once: true })
    await sleep(this.#clock, Math.max(0, ms), woken.signal)
    signal.removeEventListener('abort', wake)
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const names = this.#dirty
    this.#dirty = new Set()
    try {
      const planned = await this.#plan(names, signal)
      this.#sayPlanned(planned)
      const outcomes = await Promise.all(planned.plans.map(async (plan) => this.#apply(plan, signal)))
      if (this.#options.isWriting && !this.#options.killSwitch.isPaused) await this.#confirm(planned, outcomes, signal)
      const isIncomplete =
        planned.unread.length > 0 || outcomes.some((outcome) => outcome === undefined || failuresOf(outcome).length > 0)
      if (isIncomplete) this.#retry(names)
    } catch (error) {
      this.#options.log.warn({ err: error }, 'records pass failed')
      this.#retry(names)
    }
  }

  #retry(names: Set<string> | 'all'): void {
    this.#clock.after(RETRY_MS, () => {
      if (names === 'all' || this.#dirty === 'all') this.#dirty = 'all'
      else for (const name of names) this.#dirty.add(name)
      this.#wake()
    })
  }

  async #plan(names: Set<string> | 'all', signal: AbortSignal): Promise<Planned> {
    const { client, engine, informer, released } = this.#options
    const present = new Set(Array.from(this.#objects.values(), (object) => sourceOf(object).uid))
    return engine.plan(
      {
        ...this.#wishes(names),
        // Without a live watch nobody knows what is gone.
        sources: async (owned) =>
          informer.state === 'live' ? checkSources(client, owned, present, signal) : { present, gone: new Set() },
        ...(released === undefined ? {} : { released: released() }),
      },
      names,
      signal,
    )
  }

  #wishes(names: Set<string> | 'all'): Wishes {
    if (names === 'all') return wishesOf(this.#objects.values(), this.#options.defaultTtl)
    const keys = new Set([...names].flatMap((name) => [...(this.#byName.get(name) ?? [])]))
    const objects = [...keys].flatMap((key) => this.#objects.get(key) ?? [])
    const { desired, unusable } = wishesOf(objects, this.#options.defaultTtl)
    return {
      desired: desired.filter(({ set }) => names.has(set.name)),
      unusable: unusable.filter(({ name }) => names.has(name)),
    }
  }

  async #apply(plan: Plan, signal: AbortSignal): Promise<Outcome | undefined> {
    try {
      const outcome = await this.#options.engine.apply(plan, signal)
      this.#options.onApplied?.(outcome)
      for (const { change, code, why } of failuresOf(outcome)) {
        if (code !== undefined)
          this.#say({ name: change.name, type: change.type, code, why: why ?? '', source: change.source })
      }
      return outcome
    } catch (error) {
      this.#options.log.warn({ zone: plan.zone, provider: plan.provider, reason: messageOf(error) }, 'plan not applied')
      return undefined
    }
  }

  #sayPlanned({ plans, unread, homeless }: Planned): void {
    for (const { zone, provider, code, why } of unread)
      this.#options.log.warn({ zone, provider, code, why }, 'zone unread')
    for (const plan of plans) {
      for (const { name, type, code, why, source } of plan.refused) this.#say({ name, type, code, why, source })
      for (const change of plan.changes) this.#said.delete(`${change.name} ${change.type}`)
    }
    for (const { name, type, code, message, source } of homeless)
      this.#say({ name, type, code, why: message, source: source.uid })
  }

  #say(refusal: { name: string; type: string; code: Reason; why: string; source: string }): void {
    const key = `${refusal.name} ${refusal.type}`
    if (this.#said.get(key) === refusal.code) return
    this.#said.set(key, refusal.code)
    this.#options.log.info(refusal, 'record held')
    const object = [...this.#objects.values()].find((item) => sourceOf(item).uid === refusal.source)
    this.#options.onRefused?.(refusal, object)
  }

  /** observedGeneration, as ExternalDNS sets it: everything this object asks for was looked at and nothing is open. */
  async #confirm(planned: Planned, outcomes: readonly (Outcome | undefined)[], signal: AbortSignal): Promise<void> {
    const open = new Set([
      ...planned.plans.flatMap((plan) => plan.refused.map(({ source }) => source)),
      ...planned.homeless.map(({ source }) => source.uid),
      ...outcomes.flatMap((outcome) =>
        outcome === undefined ? [] : failuresOf(outcome).map(({ change }) => change.source),
      ),
    ])
    if (planned.unread.length > 0 || outcomes.includes(undefined)) return
    const scopes = planned.plans.map((plan) => plan.scope)
    for (const object of this.#objects.values()) {
      const { generation, namespace = '', name = '' } = object.metadata
      const isInScope = scopes.some(
        (scope) => scope === 'all' || [...namesOf(object)].some((item) => scope.includes(item)),
      )
      if (!isInScope || generation === undefined || object.status?.observedGeneration === generation) continue
      if (open.has(sourceOf(object).uid)) continue
      await this.#options.client
        .patch(
          DNSEndpoint,
          `${namespace}/${name}`,
          'merge',
          { status: { observedGeneration: generation } },
          { subresource: 'status', signal },
        )
        .catch((error: unknown) =>
          this.#options.log.debug({ reason: messageOf(error) }, 'observedGeneration not written'),
        )
    }
  }
}

/** Canonical names, and what is none as it is written: both are worth a look. */
function namesOf(object: Endpoint | undefined): Set<string> {
  const names = new Set<string>()
  for (const endpoint of object?.spec?.endpoints ?? []) {
    const name = canonicalName(typeof endpoint.dnsName === 'string' ? endpoint.dnsName : '')
    if (!isInvalid(name)) names.add(name)
  }
  return names
}
