/** What is known of the Certificate of a host: live for `explain`, from a cache for the page. Pure. */
import type { Immutable } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import type { Certificate } from '../api/certificate.ts'
import type { CertificateFact } from './facts.ts'
import type { HostDecision } from './gather.ts'

/** `live`: the Certificate of a key. Undefined: none is requested. */
export function certificateFact(
  chosen: HostDecision | undefined,
  live: (key: string) => Immutable<Certificate> | undefined,
  nowMs: number,
): CertificateFact | undefined {
  const child = chosen?.decision?.children.certificate
  if (child === undefined || child.state === 'unwanted') return undefined
  const name = certificateKey(chosen)
  if (name === undefined)
    return child.findings.length === 0
      ? undefined
      : { name: '', findings: child.findings, isPresent: false, isReady: false, message: '' }
  const found = live(name)
  const ready = found?.status?.conditions?.find(({ type }) => type === 'Ready')
  const validity = found === undefined ? undefined : validityOf(found, nowMs)
  return {
    name,
    findings: child.findings,
    isPresent: found !== undefined,
    isReady: ready?.status === 'True',
    message: ready?.message ?? 'no condition yet; is cert-manager running?',
    ...(ready?.status !== 'True' && ready?.lastTransitionTime !== undefined && { since: ready.lastTransitionTime }),
    ...validity,
  }
}

/** The Certificate that is requested; undefined: none. */
export function certificateKey(chosen: HostDecision | undefined): string | undefined {
  const child = chosen?.decision?.children.certificate
  const [desired] = child?.state === 'wanted' ? child.desired : []
  return desired === undefined ? undefined : keyOf(desired.object)
}

/**
 * cert-manager renews at `renewalTime`. Half of the time that it has for that is left for somebody to see to it, be the
 * certificate valid for an hour or for a year.
 */
function validityOf(
  { status = {} }: Immutable<Certificate>,
  nowMs: number,
): Pick<CertificateFact, 'validity' | 'changesAtMs'> {
  const endsMs = Date.parse(status.notAfter ?? '')
  if (Number.isNaN(endsMs)) return {}
  const renewalMs = Date.parse(status.renewalTime ?? '')
  const lateMs = renewalMs < endsMs ? (renewalMs + endsMs) / 2 : endsMs
  const until = new Date(endsMs).toISOString()
  if (nowMs >= endsMs) return { validity: { state: 'expired', until, since: until } }
  if (nowMs >= lateMs)
    return { validity: { state: 'expiring', until, since: new Date(lateMs).toISOString() }, changesAtMs: endsMs }
  return { changesAtMs: lateMs }
}
