/**
 * Puts publish together and into a manager: caches, controllers, the mass guard with its baseline, the certificate queue.
 */
import { type Client, type Clock, type Manager, sleep } from '@seamark/kube'
import { Certificate } from '../api/certificate.ts'
import type { ProductMetrics } from '../metrics.ts'
import { FIELD_MANAGER } from './annotation-keys.ts'
import { type BaselineState, fingerprint, readBaseline, writeBaseline } from './baseline.ts'
import { isSpecChanged } from './certificate-change.ts'
import { type CertificateQueue, createCertificateQueue } from './certificate-queue.ts'
import { findOwner } from './child.ts'
import { childKinds } from './child-kinds.ts'
import { type Considering, createConsidering } from './considering.ts'
import { addPublishControllers } from './controller.ts'
import { watchReleases } from './host-release.ts'
import { createMassGuard, type MassGuard } from './mass-guard.ts'
import type { PublishOptions, SourceKind } from './options.ts'
import { createOwnWrites } from './own-writes.ts'
import type { PublishShell } from './reconciler.ts'
import { createTold } from './report.ts'
import { sourceKey } from './source.ts'
import { sourceKindToken } from './source-reader.ts'
import { informerOptions, watchForPublish } from './watches.ts'

export interface PublishSetUp {
  readonly options: PublishOptions
  readonly metrics: ProductMetrics
  /** Where the baseline lives. */
  readonly namespace: string
  /** False in observe mode and while writing is paused. */
  readonly isWriting: () => boolean
  /** Resolves once it is known whether writing is paused. */
  readonly untilToldToWrite: (signal: AbortSignal) => Promise<void>
  /** Tell also what was already so at the start. */
  readonly isInitialTold: boolean
  readonly clock: Clock
}

const BASELINE_POLL_MS = 2_000

export function setUpPublish(manager: Manager, setUp: PublishSetUp): void {
  const { options, metrics, clock, isWriting, untilToldToWrite } = setUp
  const { informers } = manager.cluster
  watchForPublish(informers, options)
  const considering = createConsidering(informers, options)
  const served = new Map(
    childKinds(options).map((kind) => [kind, informers.informer(kind, informerOptions(kind, options))]),
  )
  const guard = options.prune
    ? createMassGuard({ clock, countPublished: () => considering.countPublished() })
    : undefined
  if (guard !== undefined) metrics.held(() => guard.held)
  const baseline = { isGuarded: options.prune }
  const queue = options.certificateApply.perSecond > 0 ? addCertificateQueue(manager, considering, setUp) : undefined
  const shell: PublishShell = {
    options,
    considering,
    guard,
    metrics,
    isWriting,
    untilToldToWrite,
    clock,
    told: createTold(setUp.isInitialTold),
    bereaved: new Set(),
    ownWrites: createOwnWrites((kind, key) => informers.get(kind, key)?.metadata.resourceVersion),
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
      if (kind !== 'Gateway')
        watchReleases(informers.informer(token, informerOptions(token, options)), kind, considering, clock)
    }
  }
  addPublishControllers(manager, shell)
  if (guard !== undefined) {
    manager.add(
      'publish-baseline',
      async (signal, client) => keepBaseline(manager, client, { considering, guard }, baseline, setUp, signal),
      {
        leader: true,
      },
    )
  }
}

function submitIfChanged(
  certificate: Certificate,
  queue: CertificateQueue | undefined,
  { cluster: { informers } }: Manager,
): boolean {
  if (queue === undefined) return false
  const key = `${certificate.metadata.namespace}/${certificate.metadata.name}`
  const ownFields = informers.ownFields(Certificate, key, FIELD_MANAGER)
  if (!isSpecChanged(certificate, informers.get(Certificate, key), ownFields)) return false
  queue.submit(certificate)
  return true
}

function addCertificateQueue(
  manager: Manager,
  considering: Considering,
  { options, metrics, clock }: PublishSetUp,
): CertificateQueue {
  let send: Client['apply'] | undefined
  const queue = createCertificateQueue(options.certificateApply, {
    clock,
    apply: async (certificate, signal) => {
      if (send === undefined) throw new Error('the certificate queue sends only while its worker runs')
      await send(Certificate, certificate, { fieldManager: FIELD_MANAGER, force: true, signal })
    },
    count: (result) => metrics.certificateApplied(true, result),
    onFailure(failed, error) {
      manager.log.warn(
        { err: error, certificate: `${failed.metadata.namespace}/${failed.metadata.name}` },
        'queued certificate was refused',
      )
      const wanted = findWanted(considering, failed, clock)
      if (wanted !== undefined) queue.submit(wanted)
    },
  })
  const run = async (signal: AbortSignal, client: Client): Promise<void> => {
    send = async (kind, intent, options) => client.apply(kind, intent, options)
    await queue.run(signal)
  }
  manager.add('certificate-apply', run, { leader: true })
  return queue
}

/** The Certificate as its owner wants it by now; undefined when it wants none any more. */
function findWanted(considering: Considering, failed: Certificate, clock: Clock): Certificate | undefined {
  const [kind = '', namespace = '', name = ''] = findOwner(failed)?.split('/') ?? []
  const steps = considering.consider(kind as SourceKind, `${namespace}/${name}`, clock.monotonic())?.plan.steps ?? []
  for (const step of steps) {
    if (step.type !== 'apply' || step.wanted.role !== 'certificate') continue
    const { metadata } = step.wanted.object
    if (metadata.namespace === failed.metadata.namespace && metadata.name === failed.metadata.name)
      return step.wanted.object
  }
  return undefined
}

/** Why it is not known where a source's names point. */
const UNKNOWN_TARGET: ReadonlySet<string> = new Set(['ServiceNotFound', 'NoLoadBalancerAddress', 'ParentNotFound'])

/** Every source points where its names are published: with this configuration nothing would move, or has moved already. */
function isSettled(considering: Considering, nowMs: number): boolean {
  return considering.sources.all().every((source) => {
    const considered = considering.consider(source.kind, sourceKey(source), nowMs)
    if (considered?.decision === undefined) return true
    const isMoving = considered.plan.steps.some((step) => step.type === 'apply' && step.isRetarget)
    const isUnknown = considered.decision.verdicts.dns.findings.some(({ reason }) => UNKNOWN_TARGET.has(reason))
    return !isMoving && !(isUnknown && considered.owned.length > 0)
  })
}

/**
 * Until the configuration is known to be the one that published last, retargets are counted; see baseline.ts. A release is
 * noted only when all it let go is done, so that a crash in the middle does not hold the rest for ever.
 */
async function keepBaseline(
  { log }: Manager,
  client: Client,
  { considering, guard }: { considering: Considering; guard: MassGuard },
  baseline: { isGuarded: boolean },
  { options, namespace, clock, isWriting }: PublishSetUp,
  signal: AbortSignal,
): Promise<void> {
  const current = fingerprint(options)
  let stored: BaselineState | undefined
  let isUnsaved = false
  let quiet = 0
  while (!signal.aborted) {
    try {
      stored ??= await readBaseline(client, namespace, signal)
      if (stored.fingerprint === current) baseline.isGuarded = false
      if (isWriting()) {
        if (guard.held > 0) {
          const { release } = await readBaseline(client, namespace, signal)
          if (release !== '' && release !== stored.released) {
            guard.release()
            stored = { ...stored, released: release }
            isUnsaved = true
          }
        }
        quiet = guard.isIdle ? quiet + 1 : 0
        if (baseline.isGuarded && quiet >= 2 && isSettled(considering, clock.monotonic())) {
          stored = { ...stored, fingerprint: current }
          isUnsaved = true
        }
        if (isUnsaved && quiet >= 2) {
          const { released, fingerprint: known = '' } = stored
          await writeBaseline(client, namespace, { fingerprint: known, released }, signal)
          isUnsaved = false
        }
      }
    } catch (error) {
      // Nothing is lost: the guard stays on, and the next poll tries again.
      if (!signal.aborted) log.warn({ err: error }, 'the state of publish cannot be kept')
    }
    await sleep(clock, BASELINE_POLL_MS, signal)
  }
}
