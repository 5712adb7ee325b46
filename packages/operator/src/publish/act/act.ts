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
  type Informers,
  Invalid,
  messageOf,
  removeFinalizer,
  type Writer,
} from '@seamark/kube'
import { type Immutable, keyOf, type Kind, type Obj } from '@seamark/kube/object'
import type { Certificate } from '../../api/certificate.ts'
import { type Finding, warning } from '../../finding.ts'
import { FINALIZER } from '../annotation-keys.ts'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import type { GuardedWrite, SecondWriterGuard, StoppedWrite } from '../../safety/second-writer-guard.ts'
import { type DesiredChild, ownerKey } from '../decide/child.ts'
import type { SourceDecision } from '../decide/source-decision.ts'
import type { MassChange, MassGuard, MassRequest } from '../../safety/mass-guard.ts'
import { type Child, isForSecret, KIND_OF_ROLE, type Step } from '../decide/plan.ts'
import { compareStep } from '../decide/step-effect.ts'

export interface ActDeps {
  readonly writer: Pick<Writer, 'apply' | 'delete'>
  readonly client: Pick<Client, 'patch'>
  readonly informers: Pick<Informers, 'get' | 'ownFields'>
  readonly kind: Kind
  readonly secondWriter: Pick<SecondWriterGuard, 'check' | 'note'>
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
  const run = new Run(deps, ownerKey(decided.source))
  run.forget(plan.steps)
  if (plan.steps.some((step) => step.type === 'add-finalizer'))
    await addFinalizer(deps.client as Client, deps.kind, object, FINALIZER)
  // Sequential: the record does not wait for the certificate, and other sources use the connection meanwhile.
  let isSecretReady = true
  for (const step of plan.steps) {
    if (step.type !== 'apply') continue
    const isAccepted = await run.apply(step)
    if (!isAccepted && isForSecret(step.desired)) isSecretReady = false
  }
  const patch = plan.steps.find((step) => step.type === 'set-secret-name')
  if (patch !== undefined && isSecretReady && run.errors.length === 0)
    await setSecretName(deps.client, deps.kind, object, patch.secretName)
  for (const step of plan.steps) if (step.type === 'delete') await run.remove(step)
  const isFree = run.errors.length === 0 && !run.isHolding
  if (isFree && plan.steps.some((step) => step.type === 'remove-finalizer')) {
    await removeFinalizer(deps.client as Client, deps.kind, object, FINALIZER)
  }
  return run.result()
}

class Run {
  readonly #deps: ActDeps
  readonly #source: string
  readonly errors: unknown[] = []
  readonly #findings: Finding[] = []
  #afterMs: number | undefined
  /** A deletion is pending or held. */
  isHolding = false

  constructor(deps: ActDeps, source: string) {
    this.#deps = deps
    this.#source = source
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
        guard.withdraw(massRequest('retarget', step.desired.object, KIND_OF_ROLE[step.desired.role]))
    }
  }

  /** True when the object is written, in place or queued. */
  async apply({ desired, isRetarget }: Extract<Step, { type: 'apply' }>): Promise<boolean> {
    const { guard, isRetargetGuarded, writer, enqueue, isServed, onCertificateApplied, informers, secondWriter } =
      this.#deps
    const kind = KIND_OF_ROLE[desired.role]
    const isInPlace = (): boolean => compareStep(desired, informers).state === 'equal'
    const write = this.#guardedWrite(kind, desired.object, isInPlace)
    const stop = secondWriter.check(write)
    if (stop !== undefined) {
      this.#wait(await stop)
      return false
    }
    if (isRetarget && isRetargetGuarded && guard !== undefined) {
      const content = JSON.stringify(desired.object)
      if (!this.#isAllowed({ ...massRequest('retarget', desired.object, kind), content })) return false
    }
    if (!isServed(kind)) {
      this.#findings.push(
        warning(
          'CRDNotInstalled',
          `${kind.kind}.${kind.group} is not installed; ${keyOf(desired.object)} is written once its CRD is installed`,
        ),
      )
      this.#waitAtMost(ABSENT_RETRY_MS)
      return false
    }
    if (desired.role === 'certificate' && enqueue(desired.object)) return true
    try {
      const written = await writer.apply<Child>(kind, desired.object)
      // The server may change nothing although the cache could not confirm that.
      if (written.metadata.resourceVersion !== write.live?.metadata.resourceVersion) secondWriter.note(write)
      if (desired.role === 'certificate') onCertificateApplied('success')
      return true
    } catch (error) {
      if (desired.role === 'certificate') onCertificateApplied('error')
      this.#fail(desired, error)
      return false
    }
  }

  async remove({ child: { kind, object }, isHandedOver = false }: Extract<Step, { type: 'delete' }>): Promise<void> {
    const { guard, writer, secondWriter } = this.#deps
    const write = { ...this.#guardedWrite(kind, object, () => false), desired: undefined }
    const stop = secondWriter.check(write)
    if (stop !== undefined) {
      this.#wait(await stop)
      this.isHolding = true
      return
    }
    if (guard !== undefined && !isHandedOver && !this.#isAllowed(massRequest('prune', object, kind))) {
      this.isHolding = true
      return
    }
    try {
      await writer.delete(kind, object)
      secondWriter.note(write)
    } catch (error) {
      this.errors.push(error)
    }
  }

  #guardedWrite(kind: Kind<Child>, object: Immutable<Child>, isInPlace: () => boolean): GuardedWrite {
    const key = keyOf(object)
    return {
      kind,
      key,
      desired: object,
      live: this.#deps.informers.get(kind, key),
      fieldManager: FIELD_MANAGER,
      source: this.#source,
      isInPlace,
    }
  }

  /** Another writer undoes our writes of this object. */
  #wait({ finding, afterMs }: StoppedWrite): void {
    this.#findings.push(finding)
    this.#waitAtMost(afterMs)
  }

  #isAllowed(request: MassRequest): boolean {
    const answer = this.#deps.guard?.ask(request) ?? { state: 'go' as const }
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

function massRequest(change: MassChange, object: Immutable<Obj>, { kind }: Kind): MassRequest {
  return { change, kind, name: keyOf(object) }
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
