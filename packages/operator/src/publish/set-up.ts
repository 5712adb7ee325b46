/**
 * Adds publish to a manager: caches, controllers, the mass guard with its baseline, the certificate queue.
 */
import type { Clock, Manager } from '@seamark/kube'
import type { ProductMetrics } from '../metrics.ts'
import type { Notify } from '../process/reports/notices.ts'
import type { SecondWriterGuard } from '../safety/second-writer-guard.ts'
import { addBaselineController } from './guard/baseline-store.ts'
import { addCertificateQueue, submitIfChanged } from './act/certificate-feed.ts'
import { childKinds } from './child-kinds.ts'
import { createSourceDecider } from './decide/source-decision.ts'
import { addPublishControllers } from './controller.ts'
import { watchReleases } from './decide/host-release.ts'
import { createHostSources } from './decide/host-holdings.ts'
import { readsPublishers } from './decide/host-publications.ts'
import type { HostSources } from '../hosts/host-sources.ts'
import type { HeldRecords } from '../safety/held-records.ts'
import type { HeldObjects } from '../safety/held-objects.ts'
import { createMassGuard } from '../safety/mass-guard.ts'
import type { MassLimits } from '../safety/mass-limits.ts'
import type { PublishOptions } from './options.ts'
import type { PublishShell } from './reconciler.ts'
import { createFindingHistory } from './report/report.ts'
import { sourceKindToken } from './sources/source-reader.ts'
import { watchForPublish } from './watches.ts'

export interface PublishSetUp {
  readonly options: PublishOptions
  readonly metrics: ProductMetrics
  /** Namespace of the baseline. */
  readonly namespace: string
  readonly mode: 'observe' | 'enforce'
  /** False in observe mode and while writing is paused. */
  readonly isWriting: () => boolean
  /** Resolves once it is known whether this process may write; undefined when it is known. */
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
  readonly secondWriter: SecondWriterGuard
  /** What records of this process holds. */
  readonly heldRecords?: HeldRecords
  readonly heldObjects: HeldObjects
  readonly massLimits: MassLimits
  readonly notify: Notify
  /** Report also findings that existed at the start. */
  readonly reportsInitialFindings: boolean
  readonly clock: Clock
}

/** Returns what balance has to know of the sources; undefined where publish leaves no host to load balancers. */
export function setUpPublish(manager: Manager, setUp: PublishSetUp): HostSources | undefined {
  const { options, metrics, clock, isWriting, untilMayWrite, secondWriter } = setUp
  const { informers } = manager.cluster
  watchForPublish(informers, options)
  const decider = createSourceDecider(informers, options)
  const served = new Map(childKinds(options).map((kind) => [kind, informers.informer(kind)]))
  const guard = options.prune
    ? createMassGuard({
        clock,
        limits: setUp.massLimits,
        countPublished: () => decider.countPublished(),
        idPrefix: 'p',
        cause: 'undo the cause (a class, Service or prefix in the configuration or the sources)',
      })
    : undefined
  if (guard !== undefined) {
    metrics.held(() => guard.held)
    setUp.heldObjects.add('publish', guard)
  }
  const baseline = { isGuarded: options.prune }
  const queue = options.certificateApply.perSecond > 0 ? addCertificateQueue(manager, decider, setUp) : undefined
  const shell: PublishShell = {
    options,
    decider,
    guard,
    metrics,
    mode: setUp.mode,
    isWriting,
    untilMayWrite,
    secondWriter,
    heldRecords: setUp.heldRecords,
    informers,
    clock,
    findingHistory: createFindingHistory(setUp.reportsInitialFindings),
    sourcesWithDeletedChild: new Set(),
    isRetargetGuarded: () => baseline.isGuarded,
    isServed: (kind) => served.get(kind)?.state !== 'absent',
    enqueue: (certificate) => submitIfChanged(certificate, queue, manager),
    onCertificateApplied: (result) => {
      if (queue !== undefined) metrics.certificateApplied(false, result)
    },
  }
  if (options.arbitrateHosts) {
    for (const kind of options.sources) {
      const token = sourceKindToken(kind)
      if (kind !== 'Gateway') watchReleases(informers.informer(token), kind, decider, clock)
    }
  }
  addPublishControllers(manager, shell)
  if (guard !== undefined) addBaselineController(manager, { decider, guard }, baseline, setUp)
  return readsPublishers(options) ? createHostSources(decider, options, clock) : undefined
}
