/**
 * The shell of publish: wires sources, children and load balancers to keys, and runs observe → decide → act for each.
 *
 * One controller per source kind; a kind whose CRD is absent waits for it and blocks nobody. Children are found by their
 * `owned-by`, so one in another namespace is repaired like one at home.
 */
import {
  annotationsChanged,
  anyOf,
  type Change,
  type Clock,
  type Context,
  labelsChanged,
  type Manager,
  type Next,
  requeue,
  Service,
  specChanged,
} from '@seamark/kube'
import { type Immutable, keyOf, type Kind, type Obj, parseKey } from '@seamark/kube/object'
import type { Certificate } from '../api/certificate.ts'
import { Gateway } from '../api/gateway.ts'
import type { ProductMetrics } from '../metrics.ts'
import { act, type ActDeps } from './act.ts'
import { findOwner, ownerKey } from './child.ts'
import { childKinds } from './child-kinds.ts'
import type { Consideration, Considering } from './considering.ts'
import type { MassGuard } from './mass-guard.ts'
import type { PublishOptions, SourceKind } from './options.ts'
import type { OwnWrites } from './own-writes.ts'
import { conditionStatus, type Told } from './report.ts'
import { sourceKindToken } from './source-reader.ts'
import { informerOptions } from './watches.ts'

export interface PublishShell {
  readonly options: PublishOptions
  readonly considering: Considering
  readonly guard: MassGuard | undefined
  readonly isRetargetGuarded: () => boolean
  readonly enqueue: (certificate: Certificate) => boolean
  readonly isServed: ActDeps['isServed']
  readonly onCertificateApplied: ActDeps['onCertificateApplied']
  readonly ownWrites: OwnWrites
  readonly metrics: ProductMetrics
  readonly clock: Clock
  readonly told: Told
  /** False in observe mode and while writing is paused: decide and count, write nothing. */
  readonly isWriting: () => boolean
}

/** Reconciles at once; each applies its children together, so about 32 requests are in flight. */
const CONCURRENCY = 16
/** While nothing may be written each source is looked at again, so that the end of a pause is noticed. */
const IDLE_RETRY_MS = 10_000

export function addPublishControllers(manager: Manager, shell: PublishShell): void {
  for (const kind of shell.options.sources) addController(manager, kind, shell)
}

function addController(manager: Manager, kind: SourceKind, shell: PublishShell): void {
  const { options, considering } = shell
  const token = sourceKindToken(kind)
  const own = informerOptions(token, options)
  const builder = manager.controller(`publish-${kind.toLowerCase()}`, token, {
    concurrency: CONCURRENCY,
    when: isSourceChange(kind),
    ...own,
  })
  for (const child of childKinds(options)) {
    const map = (object: Immutable<Obj>): string[] => keysOfOwner(object, kind)
    builder.watches(child, map, {
      optional: true,
      when: (change) => isChildChange(change) && !shell.ownWrites.isOurs(child, change.object),
      ...informerOptions(child, options),
    })
  }
  if (kind === 'HTTPProxy' || kind === 'IngressRoute') {
    for (const { service } of options.services) {
      const { namespace = '', name } = parseKey(service)
      const narrow = options.sources.includes('Service') ? {} : { namespace, fieldSelector: `metadata.name=${name}` }
      const map = (object: Immutable<Service>, cache: Pick<Context, 'list'>): string[] =>
        keyOf(object) === service ? cache.list(token).map(keyOf) : []
      builder.watches(Service, map, { when: isAddressChange, ...narrow })
    }
  }
  if (kind === 'HTTPRoute')
    builder.watches(Gateway, (_, cache) => cache.list(token).map(keyOf), {
      optional: true,
      ...informerOptions(Gateway, options),
    })
  if (options.arbitrateHosts) {
    for (const other of options.sources) {
      const map = (object: Immutable<Obj>): string[] => rivalsOf(considering, other, object, kind)
      builder.watches(sourceKindToken(other), map, {
        optional: true,
        when: isSourceChange(other),
        ...informerOptions(sourceKindToken(other), options),
      })
    }
  }
  builder
    .gone(async (key) => {
      shell.metrics.sourceDecided(kind, key, undefined)
      shell.told.forget(`${kind}/${key}`)
    })
    .reconcile(async (_, context) => reconcile(kind, token, context, shell))
}

async function reconcile(kind: SourceKind, token: Kind, context: Context, shell: PublishShell): Promise<Next> {
  const considered = shell.considering.consider(kind, context.key, shell.clock.monotonic())
  if (considered === undefined) return
  const { source, againAtMs } = considered
  const isWriting = shell.isWriting()
  const outcome = isWriting
    ? await act(considered, actDeps(token, context, shell))
    : { findings: [], errors: [], afterMs: IDLE_RETRY_MS }
  const findings = [...considered.findings, ...outcome.findings]
  const reason =
    findings.find((finding) => finding.severity === 'Warning')?.reason ?? findings[0]?.reason ?? 'Published'
  shell.metrics.sourceDecided(kind, context.key, reason)
  if (isWriting && !source.isDeleting) await tell(considered, findings, token, context, shell)
  if (outcome.errors.length > 0)
    throw outcome.errors.length === 1
      ? outcome.errors[0]
      : new AggregateError(
          outcome.errors,
          `${outcome.errors.length} children of ${ownerKey(source)} failed; first: ${String(outcome.errors[0])}`,
        )
  const waits = [
    'afterMs' in outcome ? outcome.afterMs : undefined,
    againAtMs === undefined ? undefined : againAtMs - shell.clock.monotonic(),
  ]
  const waitMs = Math.min(...waits.map((wait) => wait ?? Number.POSITIVE_INFINITY))
  if (Number.isFinite(waitMs)) return requeue(Math.max(1, waitMs))
}

function actDeps(kind: Kind, context: Context, shell: PublishShell): ActDeps {
  const { guard, isRetargetGuarded, enqueue, isServed, onCertificateApplied, ownWrites } = shell
  const onApplied: ActDeps['onApplied'] = (child, object) => ownWrites.note(child, object)
  return {
    writer: context,
    client: context.client,
    kind,
    guard,
    isRetargetGuarded: isRetargetGuarded(),
    enqueue,
    isServed,
    onCertificateApplied,
    onApplied,
  }
}

async function tell(
  { source, object }: Consideration,
  findings: Consideration['findings'],
  token: Kind,
  context: Context,
  shell: PublishShell,
): Promise<void> {
  for (const { severity, reason, message } of shell.told.news(ownerKey(source), findings))
    context.event(object, severity, reason, message)
  if (!shell.options.conditions || source.kind !== 'HTTPProxy') return
  const status = conditionStatus(object, findings, shell.clock.now())
  if (status === undefined) return
  // A condition is a courtesy: without the right to write it (contour-plus' role has none) everything else goes on.
  await context
    .status(token, object, status as never)
    .catch((error: unknown) => context.log.debug({ err: error }, 'condition not written'))
}

function isSourceChange(kind: SourceKind): (change: Change<Obj>) => boolean {
  // The addresses of these are in their status.
  const readsStatus = kind !== 'HTTPProxy' && kind !== 'IngressRoute'
  return readsStatus ? () => true : anyOf(specChanged, labelsChanged, annotationsChanged)
}

/** Our own create and everybody's status and foreign metadata are no reason to look again. */
function isChildChange(change: Change<Obj>): boolean {
  if (change.type === 'added') return false
  return change.type === 'deleted' || specChanged(change) || findOwner(change.old) !== findOwner(change.object)
}

function isAddressChange(change: Change<Service>): boolean {
  if (change.type !== 'updated') return true
  return (
    JSON.stringify(change.old.status?.loadBalancer?.ingress) !==
    JSON.stringify(change.object.status?.loadBalancer?.ingress)
  )
}

function keysOfOwner(object: Immutable<Obj>, kind: SourceKind): string[] {
  const owner = findOwner(object)
  return owner?.startsWith(`${kind}/`) === true ? [owner.slice(kind.length + 1)] : []
}

/** Sources of `kind` that name a host the changed object names. */
function rivalsOf({ sources }: Considering, changed: SourceKind, object: Immutable<Obj>, kind: SourceKind): string[] {
  const hosts = sources.read(changed, object).hosts
  const rivals = hosts.flatMap((host) => sources.claimants(host))
  return rivals
    .filter((rival) => rival.kind === kind && rival.uid !== object.metadata.uid)
    .map((rival) => `${rival.namespace}/${rival.name}`)
}
