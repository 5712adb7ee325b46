/**
 * The command line of contour-plus 0.16.2: 19 flags, each also as `CP_<NAME>`; a flag beats the environment, an empty variable
 * counts as unset. Lists in variables may be separated by commas or white space (the original splits on white space only,
 * although its manual says commas).
 *
 * Pure: text in, options or the original's error message out.
 */
import { CHILD_KINDS, type ChildKind, dropIn, type PublishOptions } from './options.ts'

type Shape = 'text' | 'list' | 'switch' | 'count' | 'rate' | 'duration'

export interface FlagSpec {
  readonly shape: Shape
  readonly fallback: string
  readonly help: string
}

/** Name → shape, default, help. Only these are bound to `CP_*`. */
export const CONTOUR_PLUS_FLAGS = {
  'metrics-addr': { shape: 'text', fallback: ':8180', help: 'bind address of the metrics endpoint; 0 turns it off' },
  crds: { shape: 'list', fallback: 'DNSEndpoint,Certificate', help: 'kinds to write' },
  'name-prefix': { shape: 'text', fallback: '', help: 'prefix of every generated object name' },
  'service-name': { shape: 'text', fallback: '', help: 'NAMESPACE/NAME of the load balancer Service (required)' },
  'default-issuer-name': { shape: 'text', fallback: '', help: 'issuer of certificates without an annotation' },
  'default-issuer-kind': { shape: 'text', fallback: 'ClusterIssuer', help: 'Issuer or ClusterIssuer' },
  'default-delegated-domain': { shape: 'text', fallback: '', help: 'suffix that DNS-01 challenges are delegated to' },
  'allowed-delegated-domains': { shape: 'list', fallback: '', help: 'delegated domains an annotation may name' },
  'allow-custom-delegations': { shape: 'switch', fallback: 'false', help: 'let annotations choose a delegated domain' },
  'csr-revision-limit': {
    shape: 'count',
    fallback: '0',
    help: 'revisionHistoryLimit of certificates; 0 leaves it out',
  },
  'ingress-class-name': { shape: 'text', fallback: '', help: 'only sources of this class' },
  'leader-election': {
    shape: 'switch',
    fallback: 'true',
    help: 'write only while holding the lease contour-plus-leader',
  },
  'propagated-annotations': { shape: 'list', fallback: '', help: 'annotation keys copied to generated objects' },
  'propagated-labels': { shape: 'list', fallback: '', help: 'label keys copied to generated objects' },
  'allowed-dns-namespaces': { shape: 'list', fallback: '', help: 'namespaces DNSEndpoints may be written to' },
  'allowed-issuer-namespaces': { shape: 'list', fallback: '', help: 'namespaces Certificates may be written to' },
  'certificate-apply-limit': { shape: 'rate', fallback: '0', help: 'certificate writes per second; 0 is no limit' },
  'certificate-apply-retry-base-delay': {
    shape: 'duration',
    fallback: '5s',
    help: 'first delay of a queued certificate',
  },
  'certificate-apply-retry-max-delay': {
    shape: 'duration',
    fallback: '10m',
    help: 'longest delay of a queued certificate',
  },
} as const satisfies Record<string, FlagSpec>

export type FlagName = keyof typeof CONTOUR_PLUS_FLAGS
/** As typed: a list flag may be repeated. */
export type FlagValues = Partial<Record<FlagName, string | readonly string[]>>

interface ContourPlusSettings {
  readonly publish: PublishOptions
  /** '0' turns the endpoint off. */
  readonly metricsAddress: string
  readonly leaderElection: boolean
}

export type FlagResult = { ok: true; settings: ContourPlusSettings } | { ok: false; message: string }

export function environmentName(flag: string): string {
  return `CP_${flag.toUpperCase().replaceAll('-', '_')}`
}

/** Flags are CSV and repeatable; variables accept commas and white space. */
function readList(value: string | readonly string[], separator: RegExp): string[] {
  return [value].flat().flatMap((text) => text.split(separator).filter((item) => item !== ''))
}

const UNIT_MS = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

/** Go's `time.ParseDuration`; a bare number is nanoseconds. Undefined when it is neither. */
export function parseDurationMs(text: string): number | undefined {
  if (/^[+-]?\d+$/.test(text)) return Number(text) / 1e6
  const match = /^([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/u.exec(text)
  if (match === null) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/gu)) {
    total += Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS]
  }
  return match[1] === '-' ? -total : total
}

const TRUE_WORDS = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])

class Reader {
  readonly #flags: FlagValues
  readonly #env: Readonly<Record<string, string | undefined>>
  constructor(flags: FlagValues, env: Readonly<Record<string, string | undefined>>) {
    this.#flags = flags
    this.#env = env
  }

  text(name: FlagName): string {
    const flag = this.#flags[name]
    if (flag !== undefined) return typeof flag === 'string' ? flag : (flag.at(-1) ?? '')
    return this.#variable(name) ?? CONTOUR_PLUS_FLAGS[name].fallback
  }

  list(name: FlagName): string[] {
    const flag = this.#flags[name]
    if (flag !== undefined) return readList(flag, /,/)
    return readList(this.#variable(name) ?? CONTOUR_PLUS_FLAGS[name].fallback, /[\s,]+/)
  }

  /** As the original: a word that is no boolean counts as false. */
  isOn(name: FlagName): boolean {
    return TRUE_WORDS.has(this.text(name))
  }

  /** As the original: what is no number counts as 0. */
  number(name: FlagName): number {
    const value = Number(this.text(name))
    return Number.isFinite(value) ? value : 0
  }

  durationMs(name: FlagName): number {
    return parseDurationMs(this.text(name)) ?? 0
  }

  #variable(name: FlagName): string | undefined {
    const value = this.#env[environmentName(name)]
    return value === undefined || value === '' ? undefined : value
  }
}

/** A flag (never a variable) whose text does not parse is a usage error, as pflag's. */
function findMalformedFlag(flags: FlagValues): string | undefined {
  for (const [name, value] of Object.entries(flags)) {
    const { shape } = CONTOUR_PLUS_FLAGS[name as FlagName]
    const text = typeof value === 'string' ? value : (value?.at(-1) ?? '')
    const isBad =
      (shape === 'switch' && !TRUE_WORDS.has(text) && !/^(0|f|F|false|FALSE|False)$/.test(text)) ||
      (shape === 'count' && !/^\d+$/.test(text)) ||
      (shape === 'rate' && (text === '' || !Number.isFinite(Number(text)))) ||
      (shape === 'duration' && parseDurationMs(text) === undefined)
    if (isBad) return `invalid argument "${text}" for "--${name}" flag`
  }
  return undefined
}

export function readContourPlusFlags(flags: FlagValues, env: Readonly<Record<string, string | undefined>>): FlagResult {
  const reader = new Reader(flags, env)
  const children = reader.list('crds')
  const serviceName = reader.text('service-name')
  const issuerKind = reader.text('default-issuer-kind')
  const perSecond = reader.number('certificate-apply-limit')
  const retryBaseMs = reader.durationMs('certificate-apply-retry-base-delay')
  const retryMaxMs = reader.durationMs('certificate-apply-retry-max-delay')
  const message =
    findMalformedFlag(flags) ??
    checkChildren(children) ??
    checkService(serviceName) ??
    checkIssuerKind(issuerKind) ??
    checkApplyLimit(perSecond, retryBaseMs, retryMaxMs)
  if (message !== undefined) return { ok: false, message }
  return {
    ok: true,
    settings: {
      metricsAddress: reader.text('metrics-addr'),
      leaderElection: reader.isOn('leader-election'),
      publish: {
        ...dropIn,
        children: CHILD_KINDS.filter((kind) => children.includes(kind)),
        namePrefix: reader.text('name-prefix'),
        services: [{ service: serviceName }],
        ingressClassName: reader.text('ingress-class-name'),
        defaultIssuerName: reader.text('default-issuer-name'),
        defaultIssuerKind: issuerKind as 'Issuer' | 'ClusterIssuer',
        defaultDelegatedDomain: reader.text('default-delegated-domain'),
        allowedDelegatedDomains: reader.list('allowed-delegated-domains'),
        allowCustomDelegations: reader.isOn('allow-custom-delegations'),
        revisionHistoryLimit: Math.max(0, Math.trunc(reader.number('csr-revision-limit'))),
        propagatedAnnotations: reader.list('propagated-annotations'),
        propagatedLabels: reader.list('propagated-labels'),
        allowedDnsNamespaces: reader.list('allowed-dns-namespaces'),
        allowedIssuerNamespaces: reader.list('allowed-issuer-namespaces'),
        certificateApply: { perSecond, retryBaseMs, retryMaxMs },
      },
    },
  }
}

function checkChildren(children: readonly string[]): string | undefined {
  if (children.length === 0) return 'at least one service need to be enabled'
  const unknown = children.find((name) => !CHILD_KINDS.includes(name as ChildKind))
  return unknown === undefined ? undefined : `unsupported CRD: ${unknown}`
}

function checkService(name: string): string | undefined {
  const parts = name.split('/')
  const isValid = parts.length === 2 && parts.every((part) => part !== '')
  return isValid ? undefined : 'service-name should be valid string as namespaced-name'
}

function checkIssuerKind(kind: string): string | undefined {
  return kind === 'Issuer' || kind === 'ClusterIssuer' ? undefined : `unsupported Issuer kind: ${kind}`
}

function checkApplyLimit(perSecond: number, baseMs: number, maxMs: number): string | undefined {
  if (perSecond < 0) return 'certificate-apply-limit must be greater than or equal to 0'
  if (baseMs <= 0) return 'certificate-apply-retry-base-delay must be greater than 0'
  if (maxMs <= 0) return 'certificate-apply-retry-max-delay must be greater than 0'
  if (maxMs < baseMs) {
    return 'certificate-apply-retry-max-delay must be greater than or equal to certificate-apply-retry-base-delay'
  }
  return undefined
}
