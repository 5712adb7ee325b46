/**
 * A small certificate authority: issues a CA and leaf certificates for servers and clients (ECDSA P-256, SHA-256).
 *
 * Place in the flow: webhook serving certificates, the embedded API server, and users of the test control plane.
 * `@peculiar/x509` is loaded by the first call that issues or loads, so importing this module costs nothing.
 *
 * Guarantees: serial numbers are 127 random bits; validity starts five minutes early, to tolerate clock skew; a leaf
 * never outlives its authority. Private keys are only returned as `keyPem`, and never in an error.
 */
import { createPrivateKey, webcrypto, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { x509 as X509 } from './x509-library.ts'
import { KubeError } from './errors.ts'

export interface CertificatePair {
  certPem: string
  /** PKCS #8. */
  keyPem: string
}

export type CertificateUsage = 'server' | 'client' | 'both'

export interface LeafRequest {
  /** Kubernetes reads the user name from here. */
  commonName: string
  /** Kubernetes reads the groups from here. */
  organizations?: readonly string[]
  dnsNames?: readonly string[]
  ipAddresses?: readonly string[]
  usages: CertificateUsage
  /** Limited by the expiry of the authority. @default one year */
  validForMs?: number
}

export interface Authority extends CertificatePair {
  readonly notAfter: Date
  issue(request: LeafRequest): Promise<CertificatePair>
}

export interface AuthorityRequest {
  commonName: string
  /** @default ten years */
  validForMs?: number
  /** Wall clock, in ms since the epoch. @default Date.now */
  now?: () => number
}

const DAY_MS = 86_400_000
const CLOCK_SKEW_MS = 5 * 60_000
const keyAlgorithm = { name: 'ECDSA', namedCurve: 'P-256' }
const signingAlgorithm = { name: 'ECDSA', hash: 'SHA-256' }

let loading: Promise<typeof X509> | undefined

async function loadX509(): Promise<typeof X509> {
  loading ??= (async () => {
    const { x509 } = await import('./x509-library.ts')
    x509.cryptoProvider.set(webcrypto)
    return x509
  })()
  return loading
}

/** Creates a self-signed authority. */
export async function createAuthority(request: AuthorityRequest): Promise<Authority> {
  const now = request.now ?? Date.now
  const x509 = await loadX509()
  const keys = await generateKeys()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: randomSerial(),
    name: subject(request.commonName),
    notBefore: new Date(now() - CLOCK_SKEW_MS),
    notAfter: new Date(now() + (request.validForMs ?? 3650 * DAY_MS)),
    keys,
    signingAlgorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return authority(x509, certificate, keys.privateKey, await exportKey(keys.privateKey), now)
}

/** Loads a stored authority, for example from a Secret. Rejects if certificate and key do not match. */
export async function loadAuthority(stored: CertificatePair, now: () => number = Date.now): Promise<Authority> {
  if (!isPair(stored))
    throw new KubeError('CERTIFICATE', 'the stored authority is unusable: certificate and private key do not match')
  const x509 = await loadX509()
  const der = Buffer.from(stored.keyPem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64')
  const privateKey = await webcrypto.subtle.importKey('pkcs8', der, keyAlgorithm, true, ['sign'])
  return authority(x509, new x509.X509Certificate(stored.certPem), privateKey, stored.keyPem, now)
}

/** True if the key belongs to the certificate; false also if either is not readable. */
export function isPair(pair: CertificatePair): boolean {
  try {
    const key = createPrivateKey(pair.keyPem)
    return new X509Certificate(pair.certPem).checkPrivateKey(key)
  } catch {
    return false
  }
}

/** Expiry of a certificate in ms since the epoch. Throws on text that is not a certificate. */
export function expiryOf(certPem: string): number {
  return Date.parse(new X509Certificate(certPem).validTo)
}

/** The certificates of a bundle, one PEM text each; other text is dropped. */
export function splitBundle(bundle: string): string[] {
  return bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? []
}

function authority(
  x509: typeof X509,
  certificate: X509.X509Certificate,
  signingKey: webcrypto.CryptoKey,
  keyPem: string,
  now: () => number,
): Authority {
  return {
    certPem: pemOf(certificate),
    keyPem,
    notAfter: certificate.notAfter,
    async issue(request) {
      const keys = await generateKeys()
      const { dnsNames = [], ipAddresses = [], organizations = [], usages } = request
      const wrong = ipAddresses.find((address) => isIP(address) === 0)
      if (wrong !== undefined)
        throw new KubeError('CERTIFICATE', `cannot issue for ${JSON.stringify(wrong)}: not an IP address`)
      const names = [
        ...dnsNames.map((value) => ({ type: 'dns' as const, value })),
        ...ipAddresses.map((value) => ({ type: 'ip' as const, value })),
      ]
      const purposes: string[] = [
        ...(usages === 'client' ? [] : [x509.ExtendedKeyUsage.serverAuth]),
        ...(usages === 'server' ? [] : [x509.ExtendedKeyUsage.clientAuth]),
      ]
      const end = Math.min(now() + (request.validForMs ?? 365 * DAY_MS), certificate.notAfter.getTime())
      const leaf = await x509.X509CertificateGenerator.create({
        serialNumber: randomSerial(),
        subject: subject(request.commonName, organizations),
        issuer: certificate.subjectName,
        notBefore: new Date(now() - CLOCK_SKEW_MS),
        notAfter: new Date(end),
        publicKey: keys.publicKey,
        signingKey,
        signingAlgorithm,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension(purposes),
          await x509.AuthorityKeyIdentifierExtension.create(certificate.publicKey),
          ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
        ],
      })
      return { certPem: pemOf(leaf), keyPem: await exportKey(keys.privateKey) }
    },
  }
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(keyAlgorithm, true, ['sign', 'verify'])
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${der.replaceAll(/(.{64})/g, '$1\n').trimEnd()}\n-----END PRIVATE KEY-----\n`
}

function pemOf(certificate: X509.X509Certificate): string {
  return `${certificate.toString('pem').trimEnd()}\n`
}

/** One relative name per organization: a list inside one would be parsed as a single multi-valued name. */
function subject(commonName: string, organizations: readonly string[] = []): X509.JsonName {
  return [{ CN: [commonName] }, ...organizations.map((organization) => ({ O: [organization] }))]
}

/** RFC 5280 §4.1.2.2: positive and at most 20 octets. The top bit is cleared, the next set, so the length is fixed. */
function randomSerial(): string {
  const bytes = Buffer.from(webcrypto.getRandomValues(new Uint8Array(16)))
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes.toString('hex')
}
