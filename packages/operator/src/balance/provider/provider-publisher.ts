/**
 * Publishes load balancers directly at DNS providers, through the guarded planner, with the original's ownership records
 * (providers/original-ownership.ts). Used by `seamark dnslb`.
 *
 * Guarantees: records that are not ours are never changed; a name is removed only when a live list shows no load balancer
 * with it, within the delete budget; in a dry run nothing is sent.
 */
import { ageOf } from '@seamark/dialects'
import { type Client, type Clock, GroupedCalls, type Immutable, type Logger, messageOf } from '@seamark/kube'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { ORIGINAL_CLUSTER, ORIGINAL_TYPES, sourceIdOf } from '../../providers/original-ownership.ts'
import { failuresOf } from '../../records/execute/result.ts'
import type { Engine } from '../../records/engine.ts'
import type { Desired, Policy } from '../../records/plan/plan.ts'
import type { ZoneView } from '../../records/plan/zone-view.ts'
import { POLICY_SET_TYPE } from '../../rrset/answer-policy.ts'
import { isWithin, type RRset, sortedUnique } from '../../rrset/rrset.ts'
import type { BalancedSet } from '../decide/answer-shares.ts'
import { type BalanceDefaults, type BalancerSettings, readLoadBalancer } from '../load-balancer.ts'
import { IdentityGuard } from './identity-guard.ts'
import type { ProviderRegistry, RegisteredProvider } from './provider-registry.ts'
import {
  type DeletedRecord,
  deletionNotice,
  reappearedMessage,
  type RecordNotice,
  undoneMessage,
} from './record-notice.ts'
import { deletionsIn, EXISTING_SOURCES, factFrom, logDryRun, PublishedZone } from './published-zone.ts'
import type { PublishedFact, RecordPublisher } from '../write/record-publisher.ts'

export interface ProviderPublisherOptions {
  readonly registry: ProviderRegistry
  /** Owner in the ownership records. Empty: nothing is ever removed, as in the original. */
  readonly identity: string
  readonly defaults: BalanceDefaults
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly isDryRun?: boolean
  /** The names that load balancers have, read live; undefined when they cannot be read. */
  readonly claimedNames: (signal: AbortSignal) => Promise<ReadonlySet<string> | undefined>
  /** The same as far as it is known without a request: only what is not among them is checked live. @default none */
  readonly knownNames?: () => ReadonlySet<string>
  /** A record was deleted, or another installation uses our identity. */
  readonly onNotice?: (notice: RecordNotice) => void
  /** The records of these load balancers changed, and not by us. */
  readonly onDrift?: (keys: readonly string[]) => void
}

/** `servers`: only zones whose server is read directly, which costs little. */
type SweepScope = 'all' | 'servers' | ReadonlySet<string>

export interface ProviderPublisher extends RecordPublisher {
  /** Removes owned records whose name no load balancer has, and reports those of load balancers that somebody else changed. */
  sweep(scope: SweepScope, signal: AbortSignal): Promise<void>
  /** Removes all records of ours from the zones of a provider; false: some are left, because of the delete budget. */
  removeAll(provider: Pick<RegisteredProvider, 'name' | 'engine'>, signal: AbortSignal): Promise<boolean>
  /** Of a name, for the ownership record. */
  cnamesOf(name: string): readonly string[]
}

const POLICY: Policy = { isHealthDriven: true, isApproved: true }
/** A read of the zone is used this long, unless we write; then drift is noticed. */
const READ_MS = 30_000
/** Names that are checked for a load balancer at once. */
const SWEEP_LIMIT = 1_000

/** No record of the type, or one of another owner: nothing to remove. */
const IGNORED_REFUSALS: ReadonlySet<string> = new Set(['TargetsMissing', 'ForeignOwner', 'UnownedRecordExists'])

export function createProviderPublisher(options: ProviderPublisherOptions): ProviderPublisher {
  const { registry, identity, clock, log } = options
  const published = new WeakMap<Engine, Map<string, PublishedZone>>()
  /** By key of the load balancer. */
  const names = new Map<string, string>()
  /** The load balancer that was observed last with a name: what is known of the name is forgotten with this one. */
  const holders = new Map<string, string>()
  const cnames = new Map<string, readonly string[]>()
  const reads = new Map<string, { readonly atMs: number; readonly engine: Engine; readonly fact: PublishedFact }>()
  /** When a name was last written: what a read that began before shows of it may be older. */
  const writtenMs = new Map<string, number>()
  const guard = new IdentityGuard(clock)
  const notify = (notice: RecordNotice): void => options.onNotice?.(notice)
  const onDeleted = (deleted: DeletedRecord): void => {
    log.info(deleted, 'record deleted')
    notify(deletionNotice(deleted))
  }

  function zoneOf({ engine, name: provider }: RegisteredProvider, zone: string): PublishedZone {
    let zones = published.get(engine)
    if (zones === undefined) published.set(engine, (zones = new Map()))
    let found = zones.get(zone)
    if (found === undefined) {
      found = new PublishedZone({
        engine,
        zone,
        provider,
        identity,
        isDryRun: options.isDryRun === true,
        log,
        onDeleted,
      })
      zones.set(zone, found)
    }
    return found
  }

  /** Load balancers that are deleted together need one list of those that remain. */
  const sweeps = new GroupedCalls<string, 'swept'>({
    keyOf: (name) => name,
    limit: SWEEP_LIMIT,
    async perform(swept, signal) {
      await publisher.sweep(new Set(swept), signal)
      return new Map(swept.map((name) => [name, 'swept']))
    },
  })

  const publisher: ProviderPublisher = {
    cnamesOf: (name) => cnames.get(name) ?? [],
    async observe(_loadBalancer, { key, namespace, recordName }, context) {
      const before = names.get(key)
      holders.set(recordName, key)
      if (before !== undefined && before !== recordName) {
        await sweeps.call(before, context.signal)
        forgetName(before, key)
      }
      names.set(key, recordName)
      const choice = registry.choose(recordName, namespace)
      if (choice.state !== 'ready') return { published: undefined, provider: choice }
      const { engine } = choice.provider
      const known = reads.get(recordName)
      if (known?.engine === engine && clock.monotonic() - known.atMs < READ_MS) return known.fact
      try {
        const fact = await zoneOf(choice.provider, choice.zone).read(recordName, context.signal)
        reads.set(recordName, { atMs: clock.monotonic(), engine, fact })
        return fact
      } catch (error) {
        return unreadable(messageOf(error))
      }
    },
    async publish({ settings, sets, cnames: hosts, reason }, { signal }) {
      const { recordName, namespace } = settings
      const choice = registry.choose(recordName, namespace)
      if (choice.state !== 'ready') throw new Error(`no provider found for '${settings.dnsName}'`)
      if (sets.length === 0 && identity === '') return 'skipped'
      const before = reads.get(recordName)?.fact.published ?? []
      const stopped = guard.checkPublished(recordName, sets, before)
      if (stopped !== undefined) {
        const message = undoneMessage(recordName, choice.provider.name, identity)
        if (stopped.isNew) log.warn({ name: recordName, provider: choice.provider.name }, message)
        return { finding: { reason: 'SecondWriter', severity: 'Warning', message }, afterMs: stopped.afterMs }
      }
      const forgetRead = (): void => {
        reads.delete(recordName)
        writtenMs.set(recordName, clock.monotonic())
      }
      forgetRead()
      if (hosts.length > 0) cnames.set(recordName, hosts)
      else cnames.delete(recordName)
      const desired =
        sets.length > 0
          ? [...sets, ...policySets(sets)].map((set) => desiredOf(set, settings))
          : removals([...before, ...policySets(before)], settings)
      try {
        const request = { name: recordName, desired, reason, loadBalancer: settings.key }
        const outcome = await zoneOf(choice.provider, choice.zone).publish(request, signal)
        if (outcome === 'published') guard.notePublished(recordName, sets)
        return outcome
      } finally {
        forgetRead()
      }
    },
    async forget(key, { signal }) {
      const name = names.get(key)
      if (name === undefined) return
      await sweeps.call(name, signal)
      names.delete(key)
      forgetName(name, key)
    },
    async removeAll({ engine, name: provider }, signal) {
      const owned = identity === '' ? new Set<string>() : await ownedNames(engine, identity, signal)
      if (owned.size === 0) return true
      await remove({ engine, provider }, owned, 'ProviderDeleted', signal)
      return options.isDryRun === true || (await ownedNames(engine, identity, signal)).size === 0
    },
    async sweep(scope, signal) {
      if (identity === '') return
      const known = options.knownNames?.()
      const found: { readonly engine: Engine; readonly provider: string; readonly unknown: ReadonlySet<string> }[] = []
      for (const { name: provider, engine } of registry.providers) {
        try {
          const candidates = typeof scope === 'string' ? await readZones(engine, scope, signal) : scope
          if (candidates === undefined) continue
          const unknown = new Set([...candidates].filter((name) => known?.has(name) !== true))
          if (unknown.size > 0) found.push({ engine, provider, unknown })
          else if (typeof scope === 'string') reportConflict(provider, [])
        } catch (error) {
          reportFailure(provider, error)
        }
      }
      const claimed = found.length === 0 ? undefined : await options.claimedNames(signal)
      if (claimed === undefined) return
      for (const { engine, provider, unknown } of found) {
        try {
          const unclaimed = [...unknown].filter((name) => !claimed.has(name))
          const back = unclaimed.filter(
            (name) => guard.checkRemoved(name, reads.get(name)?.fact.published ?? []) !== undefined,
          )
          if (typeof scope === 'string') reportConflict(provider, back)
          const removable = new Set(unclaimed.filter((name) => !back.includes(name)))
          if (removable.size > 0) await remove({ engine, provider }, removable, 'LoadBalancerDeleted', signal)
        } catch (error) {
          reportFailure(provider, error)
        }
      }
    },
  }

  function forgetName(name: string, key: string): void {
    if (holders.get(name) !== key) return
    holders.delete(name)
    cnames.delete(name)
    reads.delete(name)
    writtenMs.delete(name)
  }

  /** @param names that we deleted and that are there again; none: what was reported before is over */
  function reportConflict(provider: string, names: readonly string[]): void {
    const message = names.length === 0 ? undefined : reappearedMessage(names, provider, identity)
    if (!registry.setConflict(provider, message) || message === undefined) return
    log.warn({ provider, names }, message)
    notify({ type: 'Warning', provider, message })
  }

  /** One provider that fails delays no other. */
  function reportFailure(provider: string, error: unknown): void {
    log.warn({ provider, error: messageOf(error) }, 'records of deleted load balancers cannot be removed')
  }

  /**
   * The names that our identity marks in the zones of a provider. What the load balancers there have published is in the same
   * read: their next decisions, which follow a sweep, need none of their own. Undefined: no zone is in the scope.
   */
  async function readZones(
    engine: Engine,
    scope: 'all' | 'servers',
    signal: AbortSignal,
  ): Promise<ReadonlySet<string> | undefined> {
    const owned = new Set<string>()
    const drifted: string[] = []
    const atMs = clock.monotonic()
    const { targets } = await engine.targets(signal)
    const chosen = targets.filter(({ provider }) => scope === 'all' || provider.capabilities.readsServer === true)
    for (const target of chosen) {
      const view = await engine.view(target, 'all', signal)
      const inner = targets.filter(({ zone }) => zone !== target.zone && isWithin(zone.name, target.zone.name))
      const found = ownedIn(view, identity)
      for (const name of found) owned.add(name)
      // A name that was read before may have lost its ownership record.
      const before = [...reads].flatMap(([name, read]) => (read.engine === engine ? [name] : []))
      for (const name of new Set([...found, ...before])) {
        // A name of a zone below this one is published there.
        const isHere = isWithin(name, target.zone.name) && !inner.some(({ zone }) => isWithin(name, zone.name))
        if (!isHere || (writtenMs.get(name) ?? -1) >= atMs) continue
        const fact = factFrom(name, view, target, identity)
        const holder = holders.get(name)
        if (holder !== undefined && isOther(reads.get(name)?.fact, fact)) drifted.push(holder)
        reads.set(name, { atMs, engine, fact })
      }
    }
    if (drifted.length > 0) options.onDrift?.(drifted)
    return chosen.length === 0 ? undefined : owned
  }

  /** Each removal is requested by name, so that it needs no approval; the delete budget still counts it. */
  async function remove(
    { engine, provider }: { readonly engine: Engine; readonly provider: string },
    unclaimed: ReadonlySet<string>,
    reason: 'LoadBalancerDeleted' | 'ProviderDeleted',
    signal: AbortSignal,
  ): Promise<void> {
    const desired = [...unclaimed].flatMap((name) =>
      [...ORIGINAL_TYPES, POLICY_SET_TYPE].map((type): Desired => ({
        set: { name, type, ttl: 0, values: [] },
        source: {
          uid: sourceIdOf(name),
          label: 'a deleted load balancer',
          age: ageOf(DNSLoadBalancer, { metadata: { name } }),
        },
        policy: { ...POLICY, removeWhenEmpty: true },
      })),
    )
    const planned = await engine.plan({ desired, unusable: [], sources: EXISTING_SOURCES }, unclaimed, signal)
    for (const plan of planned.plans) {
      for (const { name, type, code, why } of plan.refused)
        if (!IGNORED_REFUSALS.has(code)) log.warn({ name, type, code, why }, 'record is not removed')
      if (plan.changes.length === 0) continue
      if (options.isDryRun === true) logDryRun(log, plan)
      else {
        const outcome = await engine.apply(plan, signal)
        for (const { change, code, why } of failuresOf(outcome))
          log.warn({ name: change.name, type: change.type, code, why }, 'record is not removed')
        for (const deleted of deletionsIn(outcome, provider)) {
          onDeleted({ ...deleted, reason })
          guard.noteRemoved(deleted.name)
        }
      }
    }
  }

  return publisher
}

/** False when it was never read. */
function isOther(before: PublishedFact | undefined, after: PublishedFact): boolean {
  return before !== undefined && JSON.stringify(before) !== JSON.stringify(after)
}

/** Names of a provider's zones that our identity marks. */
async function ownedNames(engine: Engine, identity: string, signal: AbortSignal): Promise<Set<string>> {
  const found = new Set<string>()
  for (const target of (await engine.targets(signal)).targets)
    for (const name of ownedIn(await engine.view(target, 'all', signal), identity)) found.add(name)
  return found
}

function ownedIn(view: ZoneView, identity: string): ReadonlySet<string> {
  const found = new Set<string>()
  view.eachMarker(({ owner, cluster }, name) => {
    if (owner === identity && cluster === ORIGINAL_CLUSTER) found.add(name)
  })
  return found
}

function unreadable(error: string): PublishedFact {
  return { published: undefined, provider: { state: 'unreadable', error } }
}

/** One set holds the policies of all types of the name; only our own DNS server gets it. */
function policySets(sets: readonly BalancedSet[]): RRset[] {
  const values = sets.flatMap(({ policy }) => policy ?? [])
  const [first] = sets
  if (first === undefined || values.length === 0) return []
  return [{ name: first.name, type: POLICY_SET_TYPE, ttl: first.ttl, values: sortedUnique(values) }]
}

function desiredOf({ name, type, ttl, values }: RRset, { key, namespace }: BalancerSettings): Desired {
  return {
    set: { name, type, ttl, values },
    source: {
      uid: sourceIdOf(name),
      label: `DNSLoadBalancer ${key}`,
      namespace,
      // Claims are decided before (claims.ts): a name has one load balancer here.
      age: ageOf(DNSLoadBalancer, { metadata: { namespace, name: key } }),
    },
    policy: POLICY,
  }
}

function removals(published: readonly RRset[], settings: BalancerSettings): Desired[] {
  return published.map((set) => {
    const desired = desiredOf({ ...set, values: [] }, settings)
    return { ...desired, policy: { ...POLICY, removeWhenEmpty: true } }
  })
}

/** The DNS names of all load balancers, by a live list. */
export async function listClaimedNames(
  client: Client,
  defaults: BalanceDefaults,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  return namesOf((await client.list(DNSLoadBalancer, { signal })).items, defaults)
}

export function namesOf(
  loadBalancers: readonly Immutable<DNSLoadBalancer>[],
  defaults: BalanceDefaults,
): ReadonlySet<string> {
  return new Set(
    loadBalancers.flatMap((object) => {
      const read = readLoadBalancer(object, defaults)
      return 'settings' in read ? [read.settings.recordName] : []
    }),
  )
}
