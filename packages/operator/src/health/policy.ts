/**
 * The settings of one probe target and the profiles they default to.
 *
 * Place in the flow: the caller (balance) turns a load balancer's health check into `ProbeTarget`s; the prober keeps one
 * probe per distinct `targetKey`, however many endpoints refer to it.
 *
 * Detection bound (INV-17): a target that stops answering is reported after at most
 * `intervalMs + fall · timeoutMs + (fall − 1) · edgeIntervalMs`. Jitter only ever shortens a delay, so it keeps the bound.
 */
import { isIP } from 'node:net'
import type { StatusRange } from '../expected-status.ts'
import { normalizeHost } from '@seamark/dialects'

/** Timing and thresholds. */
export interface ProbePolicy {
  /** Between two probes while nothing changes. */
  readonly intervalMs: number
  /** For one probe as a whole: name resolution, connect, TLS, headers, body. */
  readonly timeoutMs: number
  /** Consecutive successes that make an unhealthy target healthy. */
  readonly rise: number
  /** Consecutive failures that make a healthy target unhealthy. */
  readonly fall: number
  /** Between two probes while the results contradict the verdict. */
  readonly edgeIntervalMs: number
  /** Largest part of a delay that is cut off at random, 0 to 1. */
  readonly jitter: number
}

/** The request to a target, and which answer passes. */
export interface ProbeRequest {
  readonly scheme: 'https' | 'http' | 'tcp'
  readonly method: 'GET' | 'HEAD'
  /** IP address or DNS name to connect to. */
  readonly host: string
  /** Addresses of `host` that were found elsewhere; absent: the prober looks them up. */
  readonly addresses?: readonly string[]
  readonly port: number
  /** Path and query. */
  readonly path: string
  /** Value of the Host header; absent: `host`. */
  readonly hostHeader?: string
  /** Server name sent by TLS and checked when `verifyTls` is set; absent: the Host header's name. */
  readonly sni?: string
  readonly headers: Readonly<Record<string, string>>
  /** Final status codes that pass. */
  readonly expectedCodes: readonly StatusRange[]
  /** Text that the first `maxBodyBytes` of the body must contain. Plain text: a tenant's regular expression could block the prober. */
  readonly bodyContains?: string
  readonly maxBodyBytes: number
  readonly maxRedirects: number
  readonly verifyTls: boolean
  /** PEM certificates to trust instead of Node's; used when `verifyTls` is set. */
  readonly ca?: string
}

export interface ProbeTarget {
  readonly request: ProbeRequest
  readonly policy: ProbePolicy
  /**
   * Targets of one site fail together (one cluster, one network). Only other sites can show whether the prober itself
   * lost its network. Empty: the target belongs to no site.
   */
  readonly site: string
}

export const PROFILES = {
  default: { intervalMs: 5_000, timeoutMs: 2_000, rise: 2, fall: 3, edgeIntervalMs: 1_000, jitter: 0.1 },
  fast: { intervalMs: 1_000, timeoutMs: 500, rise: 2, fall: 3, edgeIntervalMs: 250, jitter: 0.1 },
} as const satisfies Record<string, ProbePolicy>

const DEFAULT_PORTS = { https: 443, http: 80, tcp: 443 } as const

/** Enough for a health page; more is never read. */
const DEFAULT_MAX_BODY_BYTES = 64 * 1024
/** As Go's HTTP client has it, which the original used. */
const DEFAULT_MAX_REDIRECTS = 10

export type ProbeSettings = Partial<ProbeRequest> & { readonly host: string }

/** A complete request; whatever is not given has the default of the contract: `GET https://host:443/`, 200, TLS not verified. */
export function probeRequest(settings: ProbeSettings): ProbeRequest {
  const scheme = settings.scheme ?? 'https'
  return {
    scheme,
    method: 'GET',
    port: DEFAULT_PORTS[scheme],
    headers: {},
    expectedCodes: [{ from: 200, to: 200 }],
    maxBodyBytes: DEFAULT_MAX_BODY_BYTES,
    maxRedirects: DEFAULT_MAX_REDIRECTS,
    verifyTls: false,
    ...settings,
    path: settings.path === undefined || settings.path === '' ? '/' : settings.path,
  }
}

export function probeTarget(
  settings: ProbeSettings,
  policy: ProbePolicy = PROFILES.default,
  site: string = settings.host,
): ProbeTarget {
  return { request: probeRequest(settings), policy, site }
}

/** Equal for targets that one probe can serve: everything but the site, which does not change the result. */
export function targetKey({ request, policy }: ProbeTarget): string {
  const r = request
  const headers = Object.entries(r.headers).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return JSON.stringify([
    r.scheme,
    r.method,
    r.host,
    r.addresses ?? null,
    r.port,
    r.path,
    r.hostHeader ?? '',
    r.sni ?? '',
    headers,
    r.expectedCodes.map(({ from, to }) => `${from}-${to}`).sort(),
    r.bodyContains ?? '',
    r.maxBodyBytes,
    r.maxRedirects,
    r.verifyTls,
    r.ca ?? '',
    policy.intervalMs,
    policy.timeoutMs,
    policy.rise,
    policy.fall,
    policy.edgeIntervalMs,
    policy.jitter,
  ])
}

/** Longest time from a target's death to the verdict (INV-17). */
export function detectionBoundMs(policy: ProbePolicy): number {
  return policy.intervalMs + policy.fall * policy.timeoutMs + (policy.fall - 1) * policy.edgeIntervalMs
}

/** Longest time from the loss of the prober's network to the first failed result of a target. */
export function eventSpanMs(policy: ProbePolicy): number {
  return policy.intervalMs + policy.timeoutMs
}

/** The name TLS asks for: IP addresses are not sent as a server name (RFC 6066 §3). */
export function serverName(request: ProbeRequest): string | undefined {
  const name = request.sni ?? hostOnly(request.hostHeader ?? request.host)
  return isIP(name) === 0 ? name : undefined
}

/** Without a port and without the brackets of an IPv6 literal. */
export function hostOnly(authority: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(authority)
  if (bracketed !== null) return bracketed[1] ?? ''
  if (isIP(authority) !== 0) return authority
  return authority.split(':', 1)[0] ?? ''
}

/** Whether a Host header or server name is the DNS name, or of a wildcard a name that it covers. */
export function isNameOf(dnsName: string, host: string): boolean {
  const [name, asked] = [normalizeHost(dnsName), normalizeHost(hostOnly(host))]
  if (!name.startsWith('*.')) return asked === name
  return asked.endsWith(name.slice(1)) && asked.length > name.length - 1
}
