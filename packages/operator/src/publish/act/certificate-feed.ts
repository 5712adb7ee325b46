/**
 * The certificate rate queue in a manager: what goes into it, who sends what is due, and what becomes of a refusal.
 */
import type { Client, Clock, Manager, RunnableContext } from '@seamark/kube'
import { Certificate } from '../../api/certificate.ts'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import { isSpecChanged } from './certificate-change.ts'
import { type CertificateQueue, createCertificateQueue } from './certificate-queue.ts'
import { findOwner } from '../decide/child.ts'
import type { SourceDecider } from '../decide/source-decision.ts'
import type { SourceKind } from '../options.ts'
import type { PublishSetUp } from '../set-up.ts'

/** True when the queue took the Certificate over: only what may make an authority issue goes through it. */
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

export function addCertificateQueue(
  manager: Manager,
  decider: SourceDecider,
  { options, metrics, clock }: Pick<PublishSetUp, 'options' | 'metrics' | 'clock'>,
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
      const wanted = findWanted(decider, failed, clock)
      if (wanted !== undefined) queue.submit(wanted)
    },
  })
  const run = async ({ signal, client }: RunnableContext): Promise<void> => {
    send = async (kind, intent, options) => client.apply(kind, intent, options)
    await queue.run(signal)
  }
  manager.add('certificate-apply', run, { leader: true })
  return queue
}

/** The Certificate as its owner wants it by now; undefined when it wants none any more. */
function findWanted(decider: SourceDecider, failed: Certificate, clock: Clock): Certificate | undefined {
  const [kind = '', namespace = '', name = ''] = findOwner(failed)?.split('/') ?? []
  const steps = decider.decide(kind as SourceKind, `${namespace}/${name}`, clock.monotonic())?.plan.steps ?? []
  for (const step of steps) {
    if (step.type !== 'apply' || step.wanted.role !== 'certificate') continue
    const { metadata } = step.wanted.object
    if (metadata.namespace === failed.metadata.namespace && metadata.name === failed.metadata.name)
      return step.wanted.object
  }
  return undefined
}
