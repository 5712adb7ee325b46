/**
 * Whether applying a Certificate changes the request to the certificate authority. All fields of the spec count but the
 * secretTemplate, which never causes cert-manager to reissue. Fields that the server or cert-manager defaulted do not count.
 */
import type { Immutable } from '@seamark/kube/object'
import type { Certificate, CertificateSpec } from '../../api/certificate.ts'

/** `ownFields`: FieldsV1 of our field manager, to detect a field that we wrote before and no longer set. */
export function isSpecChanged(
  desired: Certificate,
  live: Immutable<Certificate> | undefined,
  ownFields: string | undefined,
): boolean {
  if (live === undefined) return true
  const { secretTemplate: _, ...want } = desired.spec
  if (!isSubset(want, live.spec)) return true
  return ownedSpecFields(ownFields).some((field) => field !== 'secretTemplate' && !Object.hasOwn(want, field))
}

function ownedSpecFields(text: string | undefined): (keyof CertificateSpec)[] {
  if (text === undefined) return []
  const fields = JSON.parse(text) as { 'f:spec'?: Record<string, unknown> }
  return Object.keys(fields['f:spec'] ?? {})
    .filter((key) => key.startsWith('f:'))
    .map((key) => key.slice(2) as keyof CertificateSpec)
}

function isSubset(want: unknown, live: unknown): boolean {
  if (Array.isArray(want)) {
    return (
      Array.isArray(live) && want.length === live.length && want.every((item, index) => isSubset(item, live[index]))
    )
  }
  if (typeof want !== 'object' || want === null) return want === live
  if (typeof live !== 'object' || live === null) return false
  return Object.entries(want).every(
    ([key, value]) => Object.hasOwn(live, key) && isSubset(value, (live as Record<string, unknown>)[key]),
  )
}
