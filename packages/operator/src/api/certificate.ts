/** cert-manager's `Certificate`: the fields publish writes, and the conditions `explain` reads. */
import { kind, type Obj } from '@seamark/kube/object'

export interface CertificateSpec {
  dnsNames: string[]
  /** At most 64 bytes, else cert-manager's webhook refuses the object. */
  commonName?: string
  secretName: string
  issuerRef: { kind: string; name: string; group?: string }
  usages: string[]
  revisionHistoryLimit?: number
  secretTemplate?: { annotations?: Record<string, string>; labels?: Record<string, string> }
  privateKey?: { algorithm?: string; size?: number; encoding?: string; rotationPolicy?: string }
  /** Go durations, `2160h`. */
  duration?: string
  renewBefore?: string
  renewBeforePercentage?: number
  ipAddresses?: string[]
  uris?: string[]
  emailAddresses?: string[]
}

export interface Certificate extends Obj {
  spec: CertificateSpec
  status?: {
    conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[]
    notAfter?: string
    /** When cert-manager begins to renew it. */
    renewalTime?: string
  }
}

export const Certificate = kind<Certificate>({
  group: 'cert-manager.io',
  version: 'v1',
  kind: 'Certificate',
  plural: 'certificates',
  namespaced: true,
})
