/**
 * Rotation of an authority and of the certificate that it issues, of a webhook server or of another peer, as a pure decision.
 *
 * Flow of a new authority: (1) it is added as the first one of the bundle, while the old leaf is still served; (2) once
 * every caller trusts it (caBundle injected), a new leaf is issued; (3) an hour later, when every replica has loaded
 * that leaf, the old authority is removed from the bundle. So a replica never serves a leaf that a caller does not
 * trust.
 */
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createAuthority, expiryOf, isPair, loadAuthority, splitBundle, type CertificatePair } from '../certificates.ts'

export interface CertificateState {
  /** Newest first; the first one signs. */
  readonly authorities: readonly string[]
  readonly authorityKey: string
  readonly leaf: CertificatePair
}

export interface RotationTimes {
  /** @default two years */
  authorityMs: number
  /** @default ninety days */
  leafMs: number
  /** Time for replicas to load a new leaf. @default one hour */
  overlapMs: number
}

const DAY_MS = 86_400_000
export const rotationTimes: RotationTimes = { authorityMs: 730 * DAY_MS, leafMs: 90 * DAY_MS, overlapMs: 3_600_000 }

/** Renewed when a third of the validity is left. */
const RENEW_FRACTION = 1 / 3

export type RotationStep = 'create' | 'addAuthority' | 'issueLeaf' | 'dropAuthorities' | 'keep'

export interface RotationFacts {
  state: CertificateState | undefined
  /** DNS names and IP addresses that callers connect to. */
  dnsNames: readonly string[]
  /** What the leaf is for. @default server */
  usages?: 'server' | 'client'
  /** Every existing caller trusts the newest authority. */
  isTrusted: boolean
  nowMs: number
  times: RotationTimes
}

export function nextRotationStep({ state, dnsNames, isTrusted, nowMs, times }: RotationFacts): RotationStep {
  const newest = state?.authorities[0]
  if (state === undefined || newest === undefined) return 'create'
  if (expiryOf(newest) <= nowMs) return 'create'
  if (expiryOf(newest) - nowMs < times.authorityMs * RENEW_FRACTION) return 'addAuthority'
  const leaf = new X509Certificate(state.leaf.certPem)
  const isCurrent = leaf.verify(new X509Certificate(newest).publicKey)
  const isFresh = expiryOf(state.leaf.certPem) - nowMs >= times.leafMs * RENEW_FRACTION
  if (!isCurrent || !isFresh || !hasNames(state.leaf, dnsNames)) return isTrusted ? 'issueLeaf' : 'keep'
  const isOld = nowMs - Date.parse(leaf.validFrom) >= times.overlapMs
  return state.authorities.length > 1 && isOld ? 'dropAuthorities' : 'keep'
}

/** An IP address counts only as such: clients do not compare it with DNS names. */
export function hasNames({ certPem }: CertificatePair, names: readonly string[]): boolean {
  const leaf = new X509Certificate(certPem)
  return names.every((name) => (isIP(name) === 0 ? leaf.checkHost(name) : leaf.checkIP(name)) !== undefined)
}

export async function takeRotationStep(
  step: Exclude<RotationStep, 'keep'>,
  { state, dnsNames, usages = 'server', nowMs, times }: RotationFacts,
): Promise<CertificateState> {
  const now = () => nowMs
  const newAuthority = async () => {
    return createAuthority({ commonName: 'webhook-ca', validForMs: times.authorityMs, now })
  }
  const [commonName = 'webhook'] = dnsNames
  const leafRequest = {
    commonName: commonName.slice(0, 64),
    dnsNames: dnsNames.filter((name) => isIP(name) === 0),
    ipAddresses: dnsNames.filter((name) => isIP(name) !== 0),
    usages,
    validForMs: times.leafMs,
  } as const
  if (step === 'create' || state === undefined) {
    const authority = await newAuthority()
    return {
      authorities: [authority.certPem],
      authorityKey: authority.keyPem,
      leaf: await authority.issue(leafRequest),
    }
  }
  switch (step) {
    case 'addAuthority': {
      const authority = await newAuthority()
      const valid = state.authorities.filter((certPem) => expiryOf(certPem) > nowMs)
      return { ...state, authorities: [authority.certPem, ...valid], authorityKey: authority.keyPem }
    }
    case 'issueLeaf': {
      const authority = await loadAuthority({ certPem: state.authorities[0] ?? '', keyPem: state.authorityKey }, now)
      return { ...state, leaf: await authority.issue(leafRequest) }
    }
    case 'dropAuthorities':
      return { ...state, authorities: state.authorities.slice(0, 1) }
  }
}

/**
 * Keys in the Secret: `ca.crt` (the bundle), `ca.key`, and `tls.crt`, `tls.key` as in Secrets of type
 * kubernetes.io/tls.
 */
export function stateToData(state: CertificateState): Record<string, string> {
  const texts = {
    'ca.crt': state.authorities.join(''),
    'ca.key': state.authorityKey,
    'tls.crt': state.leaf.certPem,
    'tls.key': state.leaf.keyPem,
  }
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]))
}

/** Undefined if a part is missing, invalid or does not match the others: everything is then created again. */
export function stateFromData(data: Readonly<Record<string, string>> | undefined): CertificateState | undefined {
  const text = (name: string) => Buffer.from(data?.[name] ?? '', 'base64').toString('utf8')
  const authorities = splitBundle(text('ca.crt'))
  const authorityKey = text('ca.key')
  const leaf = { certPem: text('tls.crt'), keyPem: text('tls.key') }
  const isUsable = isPair({ certPem: authorities[0] ?? '', keyPem: authorityKey }) && isPair(leaf)
  return isUsable ? { authorities, authorityKey, leaf } : undefined
}
