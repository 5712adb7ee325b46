/**
 * Certificates and CA bundles from Secrets, verified before they are published: the chain parses, the key belongs to it.
 * Results are kept per object, because parsing takes longer than the rest of a build.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { messageOf, Secret } from '@seamark/kube'
import { splitBundle } from '@seamark/kube/certificates'
import { TLSCertificateDelegation } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import type { Certificate } from '../ir/model.ts'
import { contentHash } from '../ir/names.ts'
import type { Objects } from './input.ts'

/** With both, the Secret is broken and the certificate that is served now stays in use. */
export interface FoundCertificate {
  readonly certificate?: Certificate
  readonly fault?: string
  readonly isForbidden?: boolean
}

export type Checked<T> = T | { readonly fault: string; readonly isForbidden?: boolean }

/** `name` or `namespace/name`. */
export function secretKey(reference: string, namespace: string): string {
  return reference.includes('/') ? reference : `${namespace}/${reference}`
}

/** A certificate for objects in `namespace`; in another namespace it needs a TLSCertificateDelegation. */
export function findCertificate(objects: Objects, key: string, namespace: string): FoundCertificate {
  return isDelegated(objects, key, namespace) ? readCertificate(objects, key) : NOT_DELEGATED
}

export function findCaBundle(objects: Objects, key: string, namespace: string): Checked<{ readonly ca: string }> {
  if (!isDelegated(objects, key, namespace)) return NOT_DELEGATED
  const secret = objects.get(Secret, key)
  if (secret === undefined) return { fault: 'Secret not found' }
  return parseCaBundle(secretText(secret, 'ca.crt'))
}

/**
 * Without a check of delegation: references of a Gateway are checked by ReferenceGrants. A Secret that was deleted has no
 * certificate; of one that is broken, the certificate that is served now is used.
 */
export function readCertificate(objects: Objects, key: string): FoundCertificate {
  const secret = objects.get(Secret, key)
  if (secret === undefined) return { fault: 'Secret not found' }
  let result = parsed.get(secret)
  if (result === undefined) parsed.set(secret, (result = parseCertificate(secret, key)))
  if (!('fault' in result)) return { certificate: result }
  const certificate = objects.served?.(key)
  return { fault: result.fault, ...(certificate !== undefined && { certificate }) }
}

/** The end of a message about a broken Secret. */
export const STILL_SERVED = 'the last valid certificate is still served'

const NOT_DELEGATED = { fault: 'Certificate delegation not permitted', isForbidden: true }

const parsed = new WeakMap<Immutable<Secret>, Checked<Certificate>>()

function isDelegated(objects: Objects, key: string, namespace: string): boolean {
  const [owner = '', name = ''] = key.split('/')
  if (owner === namespace) return true
  return objects
    .list(TLSCertificateDelegation)
    .filter(({ metadata }) => metadata.namespace === owner)
    .flatMap(({ spec }) => (Array.isArray(spec?.delegations) ? spec.delegations : []))
    .some(({ secretName, targetNamespaces }) => {
      return (
        secretName === name &&
        Array.isArray(targetNamespaces) &&
        (targetNamespaces.includes('*') || targetNamespaces.includes(namespace))
      )
    })
}

function parseCertificate(secret: Immutable<Secret>, key: string): Checked<Certificate> {
  if (secret.type !== 'kubernetes.io/tls' && secret.type !== 'Opaque' && secret.type !== undefined)
    return { fault: 'secret type is not "kubernetes.io/tls" or "Opaque"' }
  const [chain, privateKey] = [secretText(secret, 'tls.crt'), secretText(secret, 'tls.key')]
  if (chain === '') return { fault: 'missing TLS certificate' }
  if (privateKey === '') return { fault: 'missing TLS private key' }
  const certificates = splitBundle(chain)
  const [leaf] = certificates
  if (leaf === undefined) return { fault: 'invalid TLS certificate: failed to locate certificate' }
  try {
    const [first] = certificates.map((each) => new X509Certificate(each))
    try {
      if (first?.checkPrivateKey(createPrivateKey(privateKey)) !== true)
        return { fault: 'invalid TLS private key: it does not belong to the certificate' }
    } catch {
      // Messages of OpenSSL may quote their input.
      return { fault: 'invalid TLS private key: it cannot be parsed' }
    }
  } catch (error) {
    return { fault: `invalid TLS certificate: ${messageOf(error)}` }
  }
  return { name: `${key}/${contentHash(`${chain}\n${privateKey}`)}`, chain, key: privateKey }
}

/** Certificates by the key of their Secret: `Objects.served` of the next build. */
export function certificatesBySecret(certificates: readonly Certificate[]): ReadonlyMap<string, Certificate> {
  return new Map(certificates.map((each) => [each.name.slice(0, each.name.lastIndexOf('/')), each]))
}

/** The certificates of a PEM bundle, or why it cannot be used. */
export function parseCaBundle(bundle: string): Checked<{ readonly ca: string }> {
  if (bundle.trim() === '') return { fault: 'empty "ca.crt" key' }
  const certificates = splitBundle(bundle)
  if (certificates.length === 0) return { fault: 'invalid CA certificate bundle: failed to locate certificate' }
  try {
    for (const each of certificates) void new X509Certificate(each)
  } catch (error) {
    return { fault: `invalid CA certificate bundle: ${messageOf(error)}` }
  }
  return { ca: certificates.join('') }
}

/** A key of a Secret, decoded; empty if absent. */
export function secretText(secret: Immutable<Secret>, field: string): string {
  return Buffer.from(secret.data?.[field] ?? '', 'base64').toString()
}
