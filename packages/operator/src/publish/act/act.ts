/**
 * Executes the plan of one source, step by step, and returns findings, errors and when to try again.
 *
 * Children are independent of each other: a refused DNSEndpoint does not prevent a Certificate, and errors are collected. The
 * finalizer is added before the first child in another namespace and removed after the last one.
 * An apply that would change nothing is not sent: the writer compares it with the cache.
 */
import {
  addFinalizer,
  BadRequest,
  type Client,
  Forbidden,
  Invalid,
  messageOf,
  removeFinalizer,
  type Writer,
} from '@seamark/kube'
import { type Immutable, keyOf, type Kind, type Obj } from '@seamark/kube/object'
import type { Certificate } from '../../api/certificate.ts'
import { type Finding, warning } from '../../finding.ts'
import { FINALIZER } from '../annotation-keys.ts'
import type { DesiredChild } from '../decide/child.ts'
import type { SourceDecision } from '../decide/source-decision.ts'
import type { MassChange, MassGuard } from '../guard/mass-guard.ts'
import { type Child, KIND_OF_ROLE, type OwnedChild, type Step } from '../decide/plan.ts'

export interface ActDeps {
  readonly writer: Pick<Writer, 'apply' | 'delete'>
  readonly client: Pick<Client, 'patch'>
  readonly kind: Kind
  /** Undefined: deletions and retargets are made without counting them. */
  readonly guard: MassGuard | undefined
  /** Retargets need the guard only while the configuration differs from the one that published last. */
  readonly isRetargetGuarded: boolean
  /** Whether the server serves the kind; objects of other kinds wait for the CRD. */
  readonly isServed: (kind: Kind<Child>) => boolean
  readonly onCertificateApplied: (result: 'success' | 'error') => void
  /** True when the certificate queue accepted the Certificate. */
  readonly enqueue: (certificate: Certificate) => boolean
}

export interface ActResult {
  readonly findings: readonly Finding[]
  /** Something could not be done yet: reconcile again after this time. */
  readonly afterMs?: number
  /** Failures to retry with back-off. */
  readonly errors: readonly unknown[]
}

/** An object that the server refused will be refused again; a change of the source, or this time, causes a retry. */
const REFUSED_RETRY_MS = 600_000
const ABSENT_RETRY_MS = 5_000
const HELD_RETRY_MS = 10_000

export async function act(decided: SourceDecision, deps: ActDeps): Promise<ActResult> {
  const { plan, object } = decided
  const run = new Run(deps)
  run.forget(plan.steps)
  if (plan.steps.some((step) => step.type === 'add-finalizer'))
    await addFinalizer(deps.client as Client, deps.kind, object, FINALIZER)
  // Sequential: the record does not wait for the certificate, and other sources use the connection meanwhile.
  for (const step of plan.steps) if (step.type === 'apply') await run.apply(step)
  const patch = plan.steps.find((step) => step.type === 'set-secret-name')
  if (patch !== undefined && run.errors.length === 0)
    await setSecretName(deps.client, deps.kind, object, patch.secretName)
  for (const step of plan.steps) if (step.type === 'delete') await run.remove(step.child)
  const isFree = run.errors.length === 0 && !run.isHolding
  if (isFree && plan.steps.some((step) => step.type === 'remove-finalizer')) {
    await removeFinalizer(deps.client as Client, deps.kind, object, FINALIZER)
  }
  return run.result()
}

class Run {
  readonly #deps: ActDeps
  readonly errors: unknown[] = []
  readonly #findings: Finding[] = []
  #afterMs: number | undefined
  /** A deletion is pending or held. */
  isHolding = false

  constructor(deps: ActDeps) {
    this.#deps = deps
  }

  result(): ActResult {
    return {
      findings: this.#findings,
      errors: this.errors,
      ...(this.#afterMs !== undefined && { afterMs: this.#afterMs }),
    }
  }

  /** Changes that are no longer required do not count against the guard. */
  forget(steps: readonly Step[]): void {
    const { guard } = this.#deps
    if (guard === undefined) return
    for (const step of steps) {
      if (step.type === 'apply' && !step.isRetarget)
        guard.withdraw(guardKey('retarget', step.desired.object, step.desired.object.kind ?? ''))
    }
  }

  async apply({ desired, isRetarget }: Extract<Step, { type: 'apply' }>): Promise<void> {
    const { guard, isRetargetGuarded, writer, enqueue, isServed, onCertificateApplied } = this.#deps
    if (isRetarget && isRetargetGuarded && guard !== undefined) {
      if (!this.#isAllowed('retarget', guardKey('retarget', desired.object, desired.object.kind ?? ''))) return
    }
    const kind = KIND_OF_ROLE[desired.role]
    if (!isServed(kind)) {
      this.#findings.push(
        warning(
          'CRDNotInstalled',
          `${kind.kind}.${kind.group} is not installed; ${keyOf(desired.object)} waits for it`,
        ),
      )
      this.#waitAtMost(ABSENT_RETRY_MS)
      return
    }
    if (desired.role === 'certificate' && enqueue(desired.object)) return
    try {
      await writer.apply(kind, desired.object)
      if (desired.role === 'certificate') onCertificateApplied('success')
    } catch (error) {
      if (desired.role === 'certificate') onCertificateApplied('error')
      this.#fail(desired, error)
    }
  }

  async remove({ kind, object }: OwnedChild): Promise<void> {
    const { guard, writer } = this.#deps
    if (guard !== undefined && !this.#isAllowed('prune', guardKey('prune', object, kind.kind))) {
      this.isHolding = true
      return
    }
    try {
      await writer.delete(kind, object)
    } catch (error) {
      this.errors.push(error)
    }
  }

  #isAllowed(change: MassChange, key: string): boolean {
    const answer = this.#deps.guard?.ask(change, key) ?? { state: 'go' as const }
    if (answer.state === 'go') return true
    this.#waitAtMost(answer.state === 'wait' ? answer.afterMs : HELD_RETRY_MS)
    if (answer.state === 'held') this.#findings.push(warning('GuardTripped', answer.message))
    return false
  }

  #fail({ object }: DesiredChild, error: unknown): void {
    const isRefused = error instanceof Invalid || error instanceof BadRequest
    if (isRefused || error instanceof Forbidden) {
      this.#findings.push(warning('ApplyRejected', `${object.kind} ${keyOf(object)}: ${messageOf(error)}`))
    }
    if (isRefused) this.#waitAtMost(REFUSED_RETRY_MS)
    else this.errors.push(error)
  }

  #waitAtMost(afterMs: number): void {
    this.#afterMs = Math.min(afterMs, this.#afterMs ?? afterMs)
  }
}

function guardKey(change: MassChange, object: Immutable<Obj>, kind: string): string {
  return `${change} ${kind} ${keyOf(object)}`
}

/** With the resourceVersion: when the source changed meanwhile, the conflict causes another reconcile. */
async function setSecretName(
  client: Pick<Client, 'patch'>,
  kind: Kind,
  object: Immutable<Obj>,
  secretName: string,
): Promise<void> {
  const { resourceVersion } = object.metadata
  await client.patch(kind, keyOf(object), 'merge', {
    metadata: { resourceVersion },
    spec: { virtualhost: { tls: { secretName } } },
  })
}
