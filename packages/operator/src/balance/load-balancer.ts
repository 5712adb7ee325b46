/**
 * Reads a DNSLoadBalancer: defaults, the older spellings, and what is wrong with it. Pure.
 *
 * Parsed here and not only by the API server: the CRD's schema or the webhook may be absent or older.
 */
import { type Immutable, parseDurationMs } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { DNSLoadBalancerSpec } from '../api/dns-load-balancer.ts'
import { canonicalName, isInvalid } from '../rrset/rrset.ts'
import { PROFILES, type ProbePolicy, probeTarget, type ProbeTarget } from '../health/policy.ts'
import { parseExpectedStatus, type StatusRange } from '../expected-status.ts'

type OnAllUnhealthy = 'ServeLast' | 'ServeAll' | 'Remove'

export interface BalancerSettings {
  readonly key: string
  readonly namespace: string
  /** As written in the spec: messages and Events repeat it. */
  readonly dnsName: string
  /** Canonical, with a trailing dot. */
  readonly recordName: string
  readonly type: 'Balanced' | 'Exclusive'
  readonly ttlSeconds: number
  readonly onAllUnhealthy: OnAllUnhealthy
  readonly failBack: 'Never' | 'Always'
  /** 0: endpoints do not expire. */
  readonly endpointValidityMs: number
}

export interface BalanceDefaults {
  readonly ttlSeconds: number
  readonly onAllUnhealthy: OnAllUnhealthy
  /** Interval of probes where the health check gives neither an interval nor a profile. @default that of the profile */
  readonly intervalMs?: number
  /** Most redirects that a health check follows, whatever the load balancer says. @default no limit of its own */
  readonly maxRedirects?: number
  /** Changes of the records of one name; the next one waits (INV-19). @default 6 */
  readonly maxChangesPerMinute?: number
}

/** TTL of INV-18. */
export const BALANCE_DEFAULTS: BalanceDefaults = { ttlSeconds: 30, onAllUnhealthy: 'ServeLast' }

export type ReadBalancer =
  | { readonly settings: BalancerSettings }
  | { readonly invalid: 'LoadBalancerInvalid'; readonly message: string }

/** Parsing is most of the cost of a decision, and an object is read several times in one: by defaults and object. */
const readBefore = new WeakMap<BalanceDefaults, WeakMap<object, ReadBalancer>>()

/** Objects are immutable: the same one is parsed once. */
export function readLoadBalancer(object: Immutable<DNSLoadBalancer>, defaults: BalanceDefaults): ReadBalancer {
  let known = readBefore.get(defaults)
  if (known === undefined) readBefore.set(defaults, (known = new WeakMap()))
  let result = known.get(object)
  if (result === undefined) known.set(object, (result = parseLoadBalancer(object, defaults)))
  return result
}

function parseLoadBalancer(object: Immutable<DNSLoadBalancer>, defaults: BalanceDefaults): ReadBalancer {
  const parsed = DNSLoadBalancerSpec.safeParse(object.spec)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    return invalid(`invalid field spec.${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`)
  }
  const spec = parsed.data
  const type = readType(spec)
  if (typeof type !== 'string') return type
  const dnsName = spec.DNSName ?? spec.dnsname ?? ''
  if (dnsName === '') return invalid('no dns name specified')
  const recordName = canonicalName(dnsName)
  if (isInvalid(recordName)) return invalid(`invalid dns name '${dnsName}': ${recordName.invalid}`)
  return {
    settings: {
      key: keyOf(object),
      namespace: object.metadata.namespace ?? '',
      dnsName,
      recordName,
      type,
      ttlSeconds: spec.ttl ?? defaults.ttlSeconds,
      onAllUnhealthy: spec.onAllUnhealthy ?? defaults.onAllUnhealthy,
      failBack: spec.failBack ?? 'Never',
      endpointValidityMs: parseDurationMs(spec.endpointValidityInterval ?? '0') ?? 0,
    },
  }
}

function readType(spec: DNSLoadBalancerSpec): 'Balanced' | 'Exclusive' | ReturnType<typeof invalid> {
  const type = spec.type ?? ''
  if (spec.singleton !== undefined) {
    // Spelled as the original does: scripts match on it.
    if (type !== '') return invalid('invalid load balancer type: singleton and type specicied')
    return spec.singleton ? 'Exclusive' : 'Balanced'
  }
  if (type === '' || type === 'Balanced') return 'Balanced'
  return type === 'Exclusive' ? 'Exclusive' : invalid('invalid load balancer type')
}

function invalid(message: string) {
  return { invalid: 'LoadBalancerInvalid', message } as const
}

/**
 * How a host of this load balancer is probed: an endpoint's address or name, or the DNS name itself. Host header and TLS
 * server name are the DNS name, so that a virtual host answers as it does for users.
 * @param addresses of the host, where they are known; else the prober looks them up
 */
export function probeOf(
  object: Immutable<DNSLoadBalancer>,
  dnsName: string,
  host: string,
  site: string,
  defaults: BalanceDefaults = BALANCE_DEFAULTS,
  addresses?: readonly string[],
): ProbeTarget {
  const { healthPath, healthCheck = {} } = object.spec
  const path = healthPath === undefined || healthPath.startsWith('/') ? healthPath : `/${healthPath}`
  // A wildcard is probed as one of the names it covers.
  const name = dnsName.replace(/\.$/, '').replace(/^\*\./, 'wildcard.')
  return probeTarget(
    {
      host,
      ...(addresses !== undefined && { addresses }),
      hostHeader: healthCheck.host ?? name,
      expectedCodes: expectedCodesOf(object.spec),
      ...(path !== undefined && { path }),
      ...(healthCheck.scheme !== undefined && { scheme: healthCheck.scheme }),
      ...(healthCheck.method !== undefined && { method: healthCheck.method }),
      ...(healthCheck.port !== undefined && { port: healthCheck.port }),
      ...(healthCheck.sni !== undefined && { sni: healthCheck.sni }),
      ...(healthCheck.bodyContains !== undefined && { bodyContains: healthCheck.bodyContains }),
      ...(healthCheck.headers !== undefined && { headers: healthCheck.headers }),
      ...(healthCheck.verifyTLS !== undefined && { verifyTls: healthCheck.verifyTLS }),
      ...redirectsOf(healthCheck.maxRedirects, defaults.maxRedirects),
    },
    policyOf(healthCheck, defaults),
    site,
  )
}

function expectedCodesOf({ statusCode = 0, healthCheck = {} }: Immutable<DNSLoadBalancer>['spec']): StatusRange[] {
  const { expectedStatus, statusCodes = [statusCode === 0 ? 200 : statusCode] } = healthCheck
  if (expectedStatus !== undefined) return parseExpectedStatus(expectedStatus)
  return statusCodes.map((code) => ({ from: code, to: code }))
}

function redirectsOf(wanted: number | undefined, limit: number | undefined): { readonly maxRedirects?: number } {
  const given = [wanted, limit].filter((count) => count !== undefined)
  return given.length === 0 ? {} : { maxRedirects: Math.min(...given) }
}

/** Shorter settings would let one tenant occupy the prober. */
const MIN_INTERVAL_MS = 100

function policyOf(
  check: NonNullable<Immutable<DNSLoadBalancerSpec>['healthCheck']>,
  { intervalMs }: BalanceDefaults,
): ProbePolicy {
  const profile = PROFILES[check.profile ?? 'default']
  const base = check.profile === undefined && intervalMs !== undefined ? { ...profile, intervalMs } : profile
  const ms = (text: string | undefined, otherwise: number) =>
    Math.max(MIN_INTERVAL_MS, (text === undefined ? undefined : parseDurationMs(text)) ?? otherwise)
  return {
    ...base,
    intervalMs: ms(check.interval, base.intervalMs),
    timeoutMs: ms(check.timeout, base.timeoutMs),
    edgeIntervalMs: ms(check.edgeInterval, base.edgeIntervalMs),
    rise: check.rise ?? base.rise,
    fall: check.fall ?? base.fall,
  }
}
