/**
 * cert-manager's annotations on a source → fields of the Certificate. Each value is checked against cert-manager's schema
 * and webhook; one invalid value refuses the whole Certificate and names the annotation, because a certificate with part
 * of the requested settings is worse than the existing one.
 *
 * contour-plus reads the first three; the others are read only with the setting `annotations`.
 */
import type { CertificateSpec } from '../../api/certificate.ts'
import { parseAddress, findHostFault, normalizeHost } from '@seamark/dialects'
import { annotation, type Annotations, KEY_ALGORITHM, KEY_SIZE, REVISION_HISTORY_LIMIT } from '../annotation-keys.ts'
import { type Finding, note, warning } from '../../finding.ts'
import { parseDurationMs } from '../flags.ts'
import { parseSecretTemplate } from './certificate-template.ts'
import type { PublishOptions } from '../options.ts'

/** `spec` is undefined when a value was refused. */
export interface CertificateSettings {
  readonly spec: Partial<CertificateSpec> | undefined
  readonly findings: readonly Finding[]
}

const HOUR_MS = 3_600_000
/** cert-manager's default duration, with which renew-before is compared. */
const DEFAULT_DURATION_MS = 2160 * HOUR_MS
/** Let's Encrypt's limit; other authorities have similar ones. */
const NAMES_LIMIT = 100

const USAGES = new Set([
  'signing',
  'digital signature',
  'content commitment',
  'key encipherment',
  'key agreement',
  'data encipherment',
  'cert sign',
  'crl sign',
  'encipher only',
  'decipher only',
  'any',
  'server auth',
  'client auth',
  'code signing',
  'email protection',
  's/mime',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'timestamping',
  'ocsp signing',
  'microsoft sgc',
  'netscape sgc',
])

/** Used in this module only: the first refused value ends the parsing. */
class Refusal extends Error {
  readonly finding: Finding
  constructor(key: string, value: string, why: string) {
    super(why)
    this.finding = warning(
      'AnnotationInvalid',
      `annotation ${key}: ${JSON.stringify(value.slice(0, 100))} ${why}; no certificate is written`,
    )
  }
}

export function readCertificateSettings(annotations: Annotations, options: PublishOptions): CertificateSettings {
  const findings: Finding[] = []
  try {
    const spec: Partial<CertificateSpec> = {
      ...readRevisionLimit(annotations, options),
      ...readPrivateKey(annotations, options, findings),
      ...(options.annotations && readOtherSettings(annotations)),
    }
    return { spec, findings }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { spec: undefined, findings: [...findings, error.finding] }
  }
}

/** Go's `ParseUint(text, 10, 32)`. */
function parseCount(text: string): number | undefined {
  const value = Number(text)
  return /^\d+$/.test(text) && value <= 0xff_ff_ff_ff ? value : undefined
}

function readRevisionLimit(annotations: Annotations, options: PublishOptions): Partial<CertificateSpec> {
  const text = annotation(annotations, REVISION_HISTORY_LIMIT)
  if (text === undefined)
    return options.revisionHistoryLimit > 0 ? { revisionHistoryLimit: options.revisionHistoryLimit } : {}
  const value = parseCount(text)
  if (value === undefined || value < 1 || value > 2 ** 31 - 1) {
    throw new Refusal(REVISION_HISTORY_LIMIT, text, 'is no number between 1 and 2147483647')
  }
  return { revisionHistoryLimit: value }
}

function readPrivateKey(
  annotations: Annotations,
  options: PublishOptions,
  findings: Finding[],
): Partial<CertificateSpec> {
  const algorithm = annotation(annotations, KEY_ALGORITHM)
  const beyond = options.annotations ? readKeyHandling(annotations) : {}
  if (algorithm === undefined) return Object.keys(beyond).length > 0 ? { privateKey: beyond } : {}
  if (algorithm !== 'RSA' && algorithm !== 'ECDSA' && algorithm !== 'Ed25519') {
    throw new Refusal(KEY_ALGORITHM, algorithm, 'is not RSA, ECDSA or Ed25519')
  }
  const size = readKeySize(annotations, algorithm, findings)
  return { privateKey: { algorithm, ...(size !== undefined && { size }), ...beyond } }
}

/** As in contour-plus: a value that is not a number is ignored, and the certificate is created. */
function readKeySize(
  annotations: Annotations,
  algorithm: 'RSA' | 'ECDSA' | 'Ed25519',
  findings: Finding[],
): number | undefined {
  const text = annotation(annotations, KEY_SIZE)
  if (text === undefined) return undefined
  const size = parseCount(text)
  if (size === undefined) {
    findings.push(
      note(
        'AnnotationInvalid',
        `annotation ${KEY_SIZE}: ${JSON.stringify(text.slice(0, 100))} is no number; the size is left out`,
      ),
    )
    return undefined
  }
  // Go omits a zero when it encodes the object.
  if (size === 0) return undefined
  const isFit = { RSA: size >= 2048 && size <= 8192, ECDSA: [256, 384, 521].includes(size), Ed25519: true }[algorithm]
  if (!isFit) throw new Refusal(KEY_SIZE, text, `is no key size of ${algorithm}`)
  return algorithm === 'Ed25519' ? undefined : size
}

function readKeyHandling(annotations: Annotations): NonNullable<CertificateSpec['privateKey']> {
  const encoding = readOption(annotations, 'cert-manager.io/private-key-encoding', ['PKCS1', 'PKCS8'])
  const rotationPolicy = readOption(annotations, 'cert-manager.io/private-key-rotation-policy', ['Never', 'Always'])
  return { ...(encoding !== undefined && { encoding }), ...(rotationPolicy !== undefined && { rotationPolicy }) }
}

function readOption(annotations: Annotations, key: string, words: readonly string[]): string | undefined {
  const text = annotation(annotations, key)
  if (text !== undefined && !words.includes(text)) throw new Refusal(key, text, `is not ${words.join(' or ')}`)
  return text
}

function readOtherSettings(annotations: Annotations): Partial<CertificateSpec> {
  const commonName = readCommonName(annotations)
  const dnsNames = readNames(annotations)
  const ipAddresses = readAddresses(annotations)
  const usages = readUsages(annotations)
  const secretTemplate = readTemplate(annotations)
  return {
    ...(commonName !== undefined && { commonName }),
    ...(dnsNames.length > 0 && { dnsNames }),
    ...(ipAddresses.length > 0 && { ipAddresses }),
    ...(usages.length > 0 && { usages }),
    ...(secretTemplate !== undefined && { secretTemplate }),
    ...readLifetime(annotations),
  }
}

/** The names that annotations add to a certificate; invalid names are refused elsewhere. */
export function readCertificateNames(annotations: Annotations): string[] {
  const keys = ['cert-manager.io/common-name', 'cert-manager.io/alt-names']
  const names = keys.flatMap((key) => (annotation(annotations, key) ?? '').split(','))
  return names.map((name) => normalizeHost(name.trim())).filter((name) => name !== '')
}

function readList(annotations: Annotations, key: string): string[] {
  const items = (annotation(annotations, key) ?? '').split(',').map((item) => item.trim())
  const present = items.filter((item) => item !== '')
  if (present.length > NAMES_LIMIT) throw new Refusal(key, items.join(','), `lists more than ${NAMES_LIMIT} entries`)
  return present
}

function readCommonName(annotations: Annotations): string | undefined {
  const key = 'cert-manager.io/common-name'
  const text = annotation(annotations, key)
  if (text === undefined || text === '') return undefined
  const fault = findHostFault(normalizeHost(text))
  if (fault !== undefined) throw new Refusal(key, text, fault)
  return normalizeHost(text)
}

function readNames(annotations: Annotations): string[] {
  const key = 'cert-manager.io/alt-names'
  return readList(annotations, key).map((item) => {
    const name = normalizeHost(item)
    const fault = findHostFault(name)
    if (fault !== undefined) throw new Refusal(key, item, fault)
    return name
  })
}

function readAddresses(annotations: Annotations): string[] {
  const key = 'cert-manager.io/ip-sans'
  return readList(annotations, key).map((item) => {
    const address = parseAddress(item)
    if (address === undefined) throw new Refusal(key, item, 'is no IP address')
    return address.text
  })
}

function readUsages(annotations: Annotations): string[] {
  const key = 'cert-manager.io/usages'
  const usages = readList(annotations, key)
  const unknown = usages.find((usage) => !USAGES.has(usage))
  if (unknown !== undefined) throw new Refusal(key, unknown, 'is no key usage of cert-manager')
  return [...new Set(usages)]
}

/** Go refuses a duration without a unit in an API object. */
function readDuration(
  annotations: Annotations,
  key: string,
  leastMs: number,
): { text: string; ms: number } | undefined {
  const text = annotation(annotations, key)
  if (text === undefined) return undefined
  const ms = /[a-z]$/.test(text) ? parseDurationMs(text) : undefined
  if (ms === undefined) throw new Refusal(key, text, 'is no duration like 2160h')
  if (ms < leastMs) throw new Refusal(key, text, `is shorter than ${leastMs / 60_000} minutes`)
  // Go's durations are 64-bit nanoseconds.
  if (ms > 9_223_372_036_854) throw new Refusal(key, text, 'is longer than 292 years')
  return { text, ms }
}

function readLifetime(annotations: Annotations): Partial<CertificateSpec> {
  const duration = readDuration(annotations, 'cert-manager.io/duration', HOUR_MS)
  const before = readDuration(annotations, 'cert-manager.io/renew-before', 300_000)
  const percentKey = 'cert-manager.io/renew-before-percentage'
  const percentText = annotation(annotations, percentKey)
  const percent = percentText === undefined ? undefined : parseCount(percentText)
  if (percentText !== undefined && (percent === undefined || percent < 1 || percent > 99)) {
    throw new Refusal(percentKey, percentText, 'is no number between 1 and 99')
  }
  if (percentText !== undefined && before !== undefined) {
    throw new Refusal(percentKey, percentText, 'excludes renew-before')
  }
  const durationMs = duration?.ms ?? DEFAULT_DURATION_MS
  if (before !== undefined && before.ms >= durationMs) {
    throw new Refusal('cert-manager.io/renew-before', before.text, 'is not shorter than the duration')
  }
  // The time that the percentage results in has the same lower bound.
  if (percent !== undefined && (durationMs * percent) / 100 < 300_000) {
    throw new Refusal(percentKey, String(percent), 'comes to less than 5 minutes')
  }
  return {
    ...(duration !== undefined && { duration: duration.text }),
    ...(before !== undefined && { renewBefore: before.text }),
    ...(percent !== undefined && { renewBeforePercentage: percent }),
  }
}

function readTemplate(annotations: Annotations): CertificateSpec['secretTemplate'] {
  const key = 'cert-manager.io/secret-template'
  const text = annotation(annotations, key)
  if (text === undefined) return undefined
  const parsed = parseSecretTemplate(text)
  if (typeof parsed === 'string') throw new Refusal(key, text, parsed)
  return parsed
}
