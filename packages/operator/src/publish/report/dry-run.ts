/**
 * `--dry-run`: shows what the first pass would write, without writing. The same caches, decisions and plans as the
 * controller. Needs permission to get, list and watch only (INV-16).
 */
import type { Cluster } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { FINALIZER } from '../annotation-keys.ts'
import { type SourceDecision, createSourceDecider } from '../decide/source-decision.ts'
import { findFormerOwner } from '../former-owner.ts'
import type { PublishOptions, SourceKind } from '../options.ts'
import type { Step } from '../decide/plan.ts'
import { sourceKey } from '../sources/source.ts'
import { sourceKindToken } from '../sources/source-reader.ts'
import { compareStep } from '../decide/step-effect.ts'
import { watchForPublish, watchPublishers } from '../watches.ts'

interface PlannedChange {
  /** `Certificate ns/foo` */
  readonly object: string
  readonly verb: 'create' | 'update' | 'delete' | 'patch'
  readonly lines: readonly string[]
}

export interface DryRunReport {
  readonly sources: number
  /** Number of desired children that are up to date. */
  readonly equal: number
  readonly changes: readonly PlannedChange[]
  /** The findings that would be reported, by source. */
  readonly findings: readonly { readonly source: string; readonly reason: string; readonly message: string }[]
}

export async function dryRun(cluster: Cluster, options: PublishOptions, signal: AbortSignal): Promise<DryRunReport> {
  const stop = new AbortController()
  const both = AbortSignal.any([signal, stop.signal])
  const watched = watchForPublish(cluster.informers, options)
  const publishers = watchPublishers(cluster, options)
  const decider = createSourceDecider(cluster.informers, options)
  const running = cluster.informers.start(both)
  try {
    await Promise.all([publishers.synced(signal), ...watched.map(async (informer) => informer.synced(signal))])
    return await report(decider, cluster, options, signal)
  } finally {
    stop.abort()
    await running
  }
}

async function report(
  decider: ReturnType<typeof createSourceDecider>,
  cluster: Cluster,
  options: PublishOptions,
  signal: AbortSignal,
): Promise<DryRunReport> {
  const changes: PlannedChange[] = []
  const findings: { source: string; reason: string; message: string }[] = []
  let sources = 0
  let equal = 0
  for (const kind of options.sources) {
    for (const object of cluster.informers.list(sourceKindToken(kind))) {
      const decided = decider.decide(kind, keyOf(object), 0)
      if (decided === undefined) continue
      sources++
      const held = await findFormerOwner(decided, {
        client: cluster.client,
        sources: decider.sources,
        options,
        signal,
      })
      findings.push(
        ...[...decided.findings, ...(held === undefined ? [] : [held])].map(({ reason, message }) => ({
          source: nameOf(kind, decided),
          reason,
          message,
        })),
      )
      // As in the reconciler: nothing of the source is written while a former owner keeps the host.
      for (const step of held === undefined ? decided.plan.steps : []) {
        const change = planned(step, decided, cluster)
        if (change === undefined) equal++
        else changes.push(change)
      }
    }
  }
  return { sources, equal, changes, findings }
}

function nameOf(kind: SourceKind, { source }: SourceDecision): string {
  return `${kind} ${sourceKey(source)}`
}

/** Undefined when the step would change nothing. */
function planned(step: Step, { source, object }: SourceDecision, { informers }: Cluster): PlannedChange | undefined {
  const self = `${source.kind} ${sourceKey(source)}`
  switch (step.type) {
    case 'add-finalizer':
      return { object: self, verb: 'patch', lines: [`+ metadata.finalizers: ${JSON.stringify(FINALIZER)}`] }
    case 'remove-finalizer':
      return { object: self, verb: 'patch', lines: [`- metadata.finalizers: ${JSON.stringify(FINALIZER)}`] }
    case 'set-secret-name': {
      const before = JSON.stringify(source.tls[0]?.secretName ?? '')
      return {
        object: self,
        verb: 'patch',
        lines: [`~ spec.virtualhost.tls.secretName: ${before} → ${JSON.stringify(step.secretName)}`],
      }
    }
    case 'delete':
      return {
        object: `${step.child.kind.kind} ${keyOf(step.child.object)}`,
        verb: 'delete',
        lines: [`- for ${self} (${object.metadata.uid})`],
      }
    case 'apply': {
      const effect = compareStep(step.desired, informers)
      if (effect.state === 'equal') return undefined
      const { object } = step.desired
      return {
        object: `${object.kind} ${keyOf(object)}`,
        verb: effect.state === 'absent' ? 'create' : 'update',
        lines: effect.lines,
      }
    }
  }
}

/** `214 proxies, 428 children equal, 0 would change` */
export function summarize(report: DryRunReport, options: PublishOptions): string {
  const noun = options.sources.every((kind) => kind === 'HTTPProxy' || kind === 'IngressRoute') ? 'proxies' : 'sources'
  return `${report.sources} ${noun}, ${report.equal} children equal, ${report.changes.length} would change`
}
