/**
 * `--shadow`: runs beside contour-plus for days, writes nothing, and compares every change that contour-plus makes with our
 * decision. The result is "N changes, M differences", with a description of each difference.
 *
 * Flow: a child or its source changes → wait until no further change arrives → decide as the controller would → compare
 * each child: equal, different, missing, or present although we would not create it.
 * Guarantees: a change counts once; differences from before the start count in `initial`, not as changes.
 */
import { type Change, type Clock, type Cluster, DebouncedKeys, type Informer } from '@seamark/kube'
import { type Immutable, keyOf, type Kind, type Obj } from '@seamark/kube/object'
import { CHILD_ROLES, findOwner, ownerKey } from '../decide/child.ts'
import { childKinds } from '../child-kinds.ts'
import { type SourceDecider, createSourceDecider } from '../decide/source-decision.ts'
import type { Decision } from '../decide/decide.ts'
import type { PublishOptions, SourceKind } from '../options.ts'
import { KIND_OF_ROLE } from '../decide/plan.ts'
import { sourceKindToken } from '../sources/source-reader.ts'
import { compareStep } from '../decide/step-effect.ts'
import { watchForPublish } from '../watches.ts'

export interface Difference {
  readonly source: string
  readonly object: string
  readonly lines: readonly string[]
}

export interface ShadowReport {
  readonly changes: number
  readonly differences: number
  /** Children that differed before the first change. */
  readonly initial: number
}

export interface ShadowOptions {
  readonly clock: Clock
  /** contour-plus needs time to act; compared when nothing changed for this long. @default 2_000 */
  readonly settleMs?: number
  readonly onCompared: (differences: readonly Difference[], report: ShadowReport) => void
  /** Called when the caches are filled and the initial comparison is done. */
  readonly onReady?: (report: ShadowReport) => void
}

export async function shadow(
  cluster: Cluster,
  options: PublishOptions,
  deps: ShadowOptions,
  signal: AbortSignal,
): Promise<ShadowReport> {
  const watched = watchForPublish(cluster.informers, options)
  const decider = createSourceDecider(cluster.informers, options)
  const running = cluster.informers.start(signal)
  await Promise.all(watched.map(async (informer) => informer.synced(signal))).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  const comparing = new ShadowComparison(cluster, decider, options, deps)
  if (!signal.aborted) comparing.start(watched)
  await running
  comparing.stop()
  return comparing.report
}

class ShadowComparison {
  readonly #cluster: Cluster
  readonly #decider: SourceDecider
  readonly #options: PublishOptions
  readonly #deps: ShadowOptions
  readonly #changes: DebouncedKeys
  /** Children that changed since their source was compared. */
  readonly #changedChildren = new Map<string, Set<string>>()
  /** Differences already reported for a source, so that an unrelated change does not report them again. */
  readonly #known = new Map<string, ReadonlySet<string>>()
  readonly #unsubscribes: (() => void)[] = []
  report: ShadowReport = { changes: 0, differences: 0, initial: 0 }

  constructor(cluster: Cluster, decider: SourceDecider, options: PublishOptions, deps: ShadowOptions) {
    this.#cluster = cluster
    this.#decider = decider
    this.#options = options
    this.#deps = deps
    const { clock, settleMs = 2_000 } = deps
    this.#changes = new DebouncedKeys({ clock, quietMs: settleMs, onQuiet: (owner) => this.#compare(owner) })
  }

  start(watched: readonly Informer<Obj>[]): void {
    for (const source of this.#decider.sources.all()) {
      const found = this.#differences(ownerKey(source))
      this.#known.set(ownerKey(source), new Set(found.map((difference) => difference.object)))
      this.report = { ...this.report, initial: this.report.initial + found.length }
    }
    this.#deps.onReady?.(this.report)
    const kinds = childKinds(this.#options)
    for (const informer of watched) {
      if (kinds.some((kind) => kind.plural === informer.kind.plural))
        this.#unsubscribes.push(informer.subscribe((change) => this.#childChanged(informer.kind, change)))
      const sourceKind = this.#options.sources.find((kind) => sourceKindToken(kind).plural === informer.kind.plural)
      if (sourceKind !== undefined)
        this.#unsubscribes.push(informer.subscribe((change) => this.#sourceChanged(sourceKind, change)))
    }
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe()
    this.#changes.close()
  }

  #childChanged(kind: Kind, change: Change<Obj>): void {
    if (change.type === 'added' && change.initial) return
    if (change.type === 'updated' && isSameContent(change.old, change.object)) return
    const owner = findOwner(change.object)
    if (owner === undefined) return
    const children = this.#changedChildren.get(owner) ?? new Set()
    this.#changedChildren.set(owner, children.add(`${kind.kind} ${keyOf(change.object)}`))
    this.#changes.touch(owner)
  }

  #sourceChanged(kind: SourceKind, change: Change<Obj>): void {
    if (change.type === 'added' && change.initial) return
    if (change.type === 'updated' && isSameContent(change.old, change.object)) return
    this.#changes.touch(ownerKey(this.#decider.sources.read(kind, change.object)))
  }

  #compare(owner: string): void {
    const changed = this.#changedChildren.get(owner) ?? new Set<string>()
    this.#changedChildren.delete(owner)
    const all = this.#differences(owner)
    const known = this.#known.get(owner) ?? new Set<string>()
    this.#known.set(owner, new Set(all.map((difference) => difference.object)))
    const fresh = all.filter((difference) => changed.has(difference.object) || !known.has(difference.object))
    // A child that we would create and contour-plus did not is a change that it should have made.
    const missing = fresh.filter((difference) => !changed.has(difference.object)).length
    const { changes, differences } = this.report
    this.report = { ...this.report, changes: changes + changed.size + missing, differences: differences + fresh.length }
    if (changed.size + missing > 0) this.#deps.onCompared(fresh, this.report)
  }

  #differences(owner: string): Difference[] {
    const [kind = '', namespace = '', name = ''] = owner.split('/')
    const source = `${kind} ${namespace}/${name}`
    const decided = this.#decider.decide(kind as SourceKind, `${namespace}/${name}`, this.#deps.clock.monotonic())
    if (decided?.decision === undefined) return []
    const found: Difference[] = []
    const desired = new Set<string>()
    for (const step of decided.plan.steps) {
      if (step.type !== 'apply') continue
      const object = `${step.desired.object.kind} ${keyOf(step.desired.object)}`
      desired.add(object)
      const effect = compareStep(step.desired, this.#cluster.informers)
      if (effect.state !== 'equal')
        found.push({ source, object, lines: effect.state === 'absent' ? ['+ is missing'] : effect.lines })
    }
    // Children that contour-plus has and we would not create, regardless of pruning; those that we hold may exist.
    for (const { kind, object } of decided.owned) {
      const label = `${kind.kind} ${keyOf(object)}`
      if (!desired.has(label) && !isHeld(decided.decision, kind))
        found.push({ source, object: label, lines: ['- would not be made'] })
    }
    return found
  }
}

function isHeld(decision: Decision, kind: Kind): boolean {
  return CHILD_ROLES.some(
    (role) => KIND_OF_ROLE[role].plural === kind.plural && decision.children[role].state === 'held',
  )
}

function isSameContent(a: Immutable<Obj>, b: Immutable<Obj>): boolean {
  const content = ({ metadata: { resourceVersion: _version, ...metadata }, ...rest }: Immutable<Obj>): string =>
    JSON.stringify({ metadata, ...rest })
  return content(a) === content(b)
}
