/**
 * The certificate queue in a manager: what is submitted to it, the controller that sends due Certificates, and the
 * handling of refusals.
 */
import { type Clock, type Manager, requeue } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { Certificate } from '../../api/certificate.ts'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import { isSpecChanged } from './certificate-change.ts'
import { type CertificateQueue, createCertificateQueue } from './certificate-queue.ts'
import { findOwner } from '../decide/child.ts'
import type { SourceDecider } from '../decide/source-decision.ts'
import type { SourceKind } from '../options.ts'
import type { PublishSetUp } from '../set-up.ts'

/** True when the queue accepted the Certificate: only changes that may cause an issuance are queued. */
export function submitIfChanged(
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

/** One Certificate at a time: the rate limit applies to all of them together. */
const CONCURRENCY = 1

export function addCertificateQueue(
  manager: Manager,
  decider: SourceDecider,
  { options, metrics, clock, secondWriter }: Pick<PublishSetUp, 'options' | 'metrics' | 'clock' | 'secondWriter'>,
): CertificateQueue {
  const queue = createCertificateQueue(options.certificateApply, {
    clock,
    count: (result) => metrics.certificateApplied(true, result),
    onFailure(failed, error) {
      const { namespace, name } = failed.metadata
      manager.log.warn({ err: error, certificate: `${namespace}/${name}` }, 'queued Certificate was refused')
      const desired = findDesired(decider, failed, clock)
      if (desired !== undefined) queue.submit(desired)
    },
  })
  manager
    .keyedController('certificate-apply', { concurrency: CONCURRENCY })
    .triggers((mark) => {
      queue.onSubmit = (key) => mark([key])
      mark(queue.keys)
      return () => {
        queue.onSubmit = () => undefined
      }
    })
    .reconcile(async (key, { client, signal }) => {
      const send = async (certificate: Certificate): Promise<void> => {
        await client.apply(Certificate, certificate, { fieldManager: FIELD_MANAGER, force: true, signal })
        const source = findOwner(certificate) ?? ''
        secondWriter.note({ kind: Certificate, key: keyOf(certificate), desired: certificate, source })
      }
      const afterMs = await queue.process(key, send)
      return afterMs === undefined ? undefined : requeue(afterMs)
    })
  return queue
}

/** The Certificate that its owner currently requests; undefined when it requests none. */
function findDesired(decider: SourceDecider, failed: Certificate, clock: Clock): Certificate | undefined {
  const [kind = '', namespace = '', name = ''] = findOwner(failed)?.split('/') ?? []
  const steps = decider.decide(kind as SourceKind, `${namespace}/${name}`, clock.monotonic())?.plan.steps ?? []
  for (const step of steps) {
    if (step.type !== 'apply' || step.desired.role !== 'certificate') continue
    const { metadata } = step.desired.object
    if (metadata.namespace === failed.metadata.namespace && metadata.name === failed.metadata.name)
      return step.desired.object
  }
  return undefined
}
