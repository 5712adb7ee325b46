/**
 * The command line of contour-plus 0.16.2: 19 flags, each also as `CP_<NAME>`; a flag overrides the environment, an empty
 * variable counts as unset. Lists in variables may be separated by commas or white space (contour-plus splits on white space
 * only, although its documentation says commas).
 *
 * Type, default and help of a flag are those of its setting (config.ts). Pure: text in, options or contour-plus' own error
 * message out.
 */
import { z } from 'zod'
import { CHILD_KINDS, PublishConfig } from './config.ts'
import { type CertificateApplyOptions, type ChildKind, dropIn, type PublishOptions } from './options.ts'

type Shape = 'text' | 'list' | 'switch' | 'count' | 'rate' | 'duration'

export interface FlagSpec {
  readonly shape: Shape
  readonly fallback: string
  readonly help: string
}

/** The setting of each flag, in contour-plus' order; the two flags without a setting of publish are declared here. */
const SETTING_OF_FLAG = {
  'metrics-addr': { shape: 'text', fallback: ':8180', help: 'bind address of the metrics endpoint; 0 turns it off' },
  crds: 'children',
  'name-prefix': 'namePrefix',
  /** contour-plus takes exactly one Service, and requires it. */
  'service-name': { shape: 'text', fallback: '', help: 'NAMESPACE/NAME of the load balancer Service (required)' },
  'default-issuer-name': 'defaultIssuerName',
  'default-issuer-kind': 'defaultIssuerKind',
  'default-delegated-domain': 'defaultDelegatedDomain',
  'allowed-delegated-domains': 'allowedDelegatedDomains',
  'allow-custom-delegations': 'allowCustomDelegations',
  'csr-revision-limit': 'revisionHistoryLimit',
  'ingress-class-name': 'ingressClassName',
  'leader-election': {
    shape: 'switch',
    fallback: 'true',
    help: 'write only while holding the lease contour-plus-leader',
  },
  'propagated-annotations': 'propagatedAnnotations',
  'propagated-labels': 'propagatedLabels',
  'allowed-dns-namespaces': 'allowedDnsNamespaces',
  'allowed-issuer-namespaces': 'allowedIssuerNamespaces',
  'certificate-apply-limit': 'certificateApplyLimit',
  'certificate-apply-retry-base-delay': 'certificateApplyRetryBaseDelay',
  'certificate-apply-retry-max-delay': 'certificateApplyRetryMaxDelay',
} as const satisfies Record<string, FlagSpec | keyof PublishConfig>

export type FlagName = keyof typeof SETTING_OF_FLAG

interface SettingSchema {
  readonly type?: string
  readonly format?: string
  readonly default?: unknown
  readonly description?: string
}

const SHAPES: Readonly<Record<string, Shape>> = {
  string: 'text',
  array: 'list',
  boolean: 'switch',
  integer: 'count',
  number: 'rate',
}

function describeFlags(): Record<FlagName, FlagSpec> {
  const { properties } = z.toJSONSchema(PublishConfig, { io: 'input' }) as {
    properties: Record<string, SettingSchema>
  }
  const specOf = (setting: FlagSpec | string): FlagSpec => {
    if (typeof setting !== 'string') return setting
    const { type = '', format, default: byDefault = '', description = '' } = properties[setting] ?? {}
    const shape = format === 'duration' ? 'duration' : (SHAPES[type] ?? 'text')
    return { shape, fallback: String(byDefault), help: description }
  }
  return Object.fromEntries(
    Object.entries(SETTING_OF_FLAG).map(([name, setting]) => [name, specOf(setting)]),
  ) as Record<FlagName, FlagSpec>
}

/** Only these are bound to `CP_*`. */
export const CONTOUR_PLUS_FLAGS: Readonly<Record<FlagName, FlagSpec>> = describeFlags()

/** As given on the command line: a list flag may be repeated. */
export type FlagValues = Partial<Record<FlagName, string | readonly string[]>>

interface ContourPlusSettings {
  readonly publish: PublishOptions
  /** '0' disables the endpoint. */
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

  /** As in contour-plus: an invalid boolean counts as false. */
  isOn(name: FlagName): boolean {
    return TRUE_WORDS.has(this.text(name))
  }

  /** As in contour-plus: an invalid number counts as 0. */
  number(name: FlagName): number {
    const value = Number(this.text(name))
    return Number.isFinite(value) ? value : 0
  }

  durationMs(name: FlagName): number {
    return parseDurationMs(this.text(name)) ?? 0
  }

  value(name: FlagName): unknown {
    switch (CONTOUR_PLUS_FLAGS[name].shape) {
      case 'text':
        return this.text(name)
      case 'list':
        return this.list(name)
      case 'switch':
        return this.isOn(name)
      case 'count':
        return Math.max(0, Math.trunc(this.number(name)))
      case 'rate':
        return this.number(name)
      case 'duration':
        return this.durationMs(name)
    }
  }

  #variable(name: FlagName): string | undefined {
    const value = this.#env[environmentName(name)]
    return value === undefined || value === '' ? undefined : value
  }
}

/** A flag (never a variable) with an invalid value is a usage error, as in pflag. */
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
  const certificateApply = {
    perSecond: reader.number('certificate-apply-limit'),
    retryBaseMs: reader.durationMs('certificate-apply-retry-base-delay'),
    retryMaxMs: reader.durationMs('certificate-apply-retry-max-delay'),
  }
  const message =
    findMalformedFlag(flags) ??
    checkChildren(children) ??
    checkService(serviceName) ??
    checkIssuerKind(reader.text('default-issuer-kind')) ??
    checkApplyLimit(certificateApply)
  if (message !== undefined) return { ok: false, message }
  return {
    ok: true,
    settings: {
      metricsAddress: reader.text('metrics-addr'),
      leaderElection: reader.isOn('leader-election'),
      publish: {
        ...dropIn,
        ...readSettings(reader),
        children: CHILD_KINDS.filter((kind) => children.includes(kind)),
        services: [{ service: serviceName }],
        certificateApply,
      },
    },
  }
}

/** The settings whose flag has the same value: all but Services, and the rate of certificates. */
function readSettings(reader: Reader): Partial<PublishOptions> {
  const settings: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(SETTING_OF_FLAG) as [FlagName, unknown][]) {
    if (typeof setting !== 'string' || !Object.hasOwn(dropIn, setting)) continue
    settings[setting] = reader.value(name)
  }
  return settings
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

function checkApplyLimit({ perSecond, retryBaseMs, retryMaxMs }: CertificateApplyOptions): string | undefined {
  if (perSecond < 0) return 'certificate-apply-limit must be greater than or equal to 0'
  if (retryBaseMs <= 0) return 'certificate-apply-retry-base-delay must be greater than 0'
  if (retryMaxMs <= 0) return 'certificate-apply-retry-max-delay must be greater than 0'
  if (retryMaxMs < retryBaseMs) {
    return 'certificate-apply-retry-max-delay must be greater than or equal to certificate-apply-retry-base-delay'
  }
  return undefined
}
