/**
 * Ingress v1. Prefix paths are compared by segment; ImplementationSpecific is a regex if it contains one of `^+*[]%`, else
 * a string prefix. An Ingress has no conditions: what is wrong becomes a finding (an Event), and the rest is served.
 */
import { byAge, findGrantFault } from '@seamark/dialects'
import { Ingress, messageOf } from '@seamark/kube'
import type { IngressBackend } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import { parseGoDuration, parseTimeout } from '../draft/durations.ts'
import type { Draft, Finding } from '../draft/draft.ts'
import { originOf } from '../draft/origin.ts'
import type { BuildSettings, Objects } from '../draft/input.ts'
import { type Allowance } from '../draft/limits.ts'
import { findCertificate, secretKey, STILL_SERVED } from '../draft/secrets.ts'
import { clusterOf, protocolOf, resolveService } from '../draft/services.ts'
import { runStep, type DraftSink, type Step, type StepRecords, type StepTarget } from '../draft/step.ts'
import type { Parts } from '../draft/turns.ts'
import { identify, type StatusIntent } from '../draft/status-intent.ts'
import type { Action, PathMatch, Retry, TlsVersion } from '../ir/model.ts'
import { regexFault } from '../ir/regex.ts'
import { withoutTrailingSlashes } from '../ir/path-text.ts'
import { isServedClass } from './ingress-class.ts'
import { hostName, singleLabelMatch } from './wildcard-host.ts'

export function servedIngresses(objects: Objects, settings: BuildSettings): Immutable<Ingress>[] {
  return objects
    .list(Ingress)
    .filter((ingress) => isServedClass(ingress, settings))
    .toSorted(byAge(Ingress))
}

const intents = new WeakMap<Immutable<Ingress>, StatusIntent>()

/** An Ingress has addresses and no conditions: its status is the same object in every build. */
export function ingressIntent(ingress: Immutable<Ingress>): StatusIntent {
  let intent = intents.get(ingress)
  if (intent === undefined) intents.set(ingress, (intent = { kind: 'Ingress', ...identify(ingress), status: {} }))
  return intent
}

/** What a route does with its requests. */
export type BackendResolver = (
  ingress: Immutable<Ingress>,
  backend: Immutable<IngressBackend>,
  route: { readonly host: string; readonly path: PathMatch; readonly at: string },
) => Action

/** Shared: a cluster has thousands of routes. */
const NONE: readonly never[] = []

const records: StepRecords<StepTarget> = new WeakMap()

export function* addIngresses(
  draft: Draft,
  objects: Objects,
  settings: BuildSettings,
  ingresses: readonly Immutable<Ingress>[],
  allowance: Allowance,
): Parts<void> {
  const context = { objects, settings, target: { draft } }
  let work = 0
  for (const ingress of ingresses) {
    try {
      const { namespace = '' } = ingress.metadata
      const { routes, patterns } = sizeOf(ingress)
      // Certificates and annotations may take as long as a whole part.
      const isSmall = ingress.spec?.tls === undefined && ingress.metadata.annotations === undefined
      work += isSmall ? 1 + routes : PART
      if (work >= PART) {
        work = 0
        yield
      }
      const fault = allowance.takePatterns(namespace, patterns) ?? allowance.takeRoutes(namespace, routes)
      if (fault !== undefined) {
        report(draft, ingress, fault.reason, `${fault.message}; the Ingress is not served`)
        continue
      }
      yield* runStep(records, ingress, context, (step) => addServed(step, settings, ingress))
    } catch (error) {
      report(draft, ingress, 'Unreadable', `the object cannot be read: ${messageOf(error)}; it is not served`)
    }
  }
}

function addServed(
  step: Step<StepTarget>,
  settings: BuildSettings,
  ingress: Immutable<Ingress>,
): Parts<ReadonlySet<string>> {
  const policy = policyOf(ingress, settings)
  return addIngress(
    step,
    step,
    ingress,
    (_ingress, backend, { path, at }) => forward(step, step, settings, policy, ingress, backend, path, at),
    grantedNames(settings, step, ingress),
  )
}

/** Counted before anything is made. */
export function sizeOf({ spec }: Immutable<Ingress>): { routes: number; patterns: number } {
  let [routes, patterns] = [spec?.defaultBackend === undefined ? 0 : 1, 0]
  for (const { http } of spec?.rules ?? [])
    for (const { path = '', pathType } of http?.paths ?? []) {
      routes++
      if (pathMatch(path, pathType).kind === 'regex') patterns++
    }
  return { routes, patterns }
}

/** Which hosts the namespace of the Ingress may have; the others are reported once each. */
function grantedNames(
  { grants }: BuildSettings,
  draft: DraftSink,
  ingress: Immutable<Ingress>,
): ((host: string) => boolean) | undefined {
  if (grants.length === 0) return undefined
  const { namespace = '' } = ingress.metadata
  const known = new Map<string, boolean>()
  return (host) => {
    let isGranted = known.get(host)
    if (isGranted === undefined) {
      const fault = findGrantFault(grants, namespace, host)
      known.set(host, (isGranted = fault === undefined))
      if (fault !== undefined && known.size <= MAX_REPORTED_NAMES) {
        const what = host === '*' ? 'every host (a default backend, or a rule without a host)' : `host ${host}`
        report(draft, ingress, 'NameNotGranted', `${what} is not served: ${fault}`)
      }
    }
    return isGranted
  }
}

/** Events of one Ingress. */
const MAX_REPORTED_NAMES = 10
/** Paths in one part of the work. */
const PART = 50

/**
 * Adds the hosts, paths and certificates of an Ingress, in parts. Returns the hosts that have a certificate.
 * @param owns whether it may serve a host; rules for others are left out
 */
export function* addIngress(
  draft: DraftSink,
  objects: Objects,
  ingress: Immutable<Ingress>,
  resolve: BackendResolver,
  owns: (host: string) => boolean = () => true,
): Parts<ReadonlySet<string>> {
  const { annotations } = ingress.metadata
  const secureHosts = ingress.spec?.tls === undefined ? NO_HOSTS : yield* addTls(draft, objects, ingress, owns)
  const isHttpAllowed = annotations?.['kubernetes.io/ingress.allow-http'] !== 'false'
  const isForced =
    annotation(annotations, 'force-ssl-redirect') === 'true' ||
    annotations?.['ingress.kubernetes.io/force-ssl-redirect'] === 'true'

  const served = { draft, ingress, resolve, owns, secureHosts, isHttpAllowed, isForced }
  const { defaultBackend, rules = [] } = ingress.spec ?? {}
  let hasBadRegex = false
  let work = 0
  if (defaultBackend !== undefined)
    addPath(served, '*', { kind: 'prefix', value: '/' }, defaultBackend, 'spec.defaultBackend')
  for (const [index, rule] of rules.entries()) {
    const at = `spec.rules[${index}]`
    const host = rule.host === undefined || rule.host === '' ? '*' : hostName(rule.host)
    if (host === undefined) {
      report(draft, ingress, 'InvalidHost', `${at}: "${rule.host ?? ''}" is not a DNS name; the rule is not served`)
      continue
    }
    for (const [number, { path = '/', pathType, backend }] of (rule.http?.paths ?? []).entries()) {
      if (++work % PART === 0) yield
      const place = `${at}.http.paths[${number}]`
      const match = pathMatch(path === '' ? '/' : path, pathType)
      if (match.kind === 'regex') {
        // The first bad one decides: the others cost nothing.
        if (hasBadRegex) continue
        const fault = regexFault(match.value)
        if (fault !== undefined) {
          hasBadRegex = true
          report(
            draft,
            ingress,
            'InvalidRegex',
            `${place}: regex "${path}" is invalid: ${fault}; it and the regular expressions after it are not served`,
          )
          continue
        }
      }
      addPath(served, host, match, backend, place)
    }
  }
  return secureHosts
}

interface ServedIngress {
  readonly draft: DraftSink
  readonly ingress: Immutable<Ingress>
  readonly resolve: BackendResolver
  readonly owns: (host: string) => boolean
  readonly secureHosts: ReadonlySet<string>
  readonly isHttpAllowed: boolean
  readonly isForced: boolean
}

function addPath(
  { draft, ingress, resolve, owns, secureHosts, isHttpAllowed, isForced }: ServedIngress,
  host: string,
  path: PathMatch,
  backend: Immutable<IngressBackend>,
  at: string,
): void {
  if (!owns(host)) return
  const extra = singleLabelMatch(host)
  const route = {
    match: { path, headers: extra === undefined ? NONE : [extra], query: NONE },
    action: resolve(ingress, backend, { host, path, at }),
    upgradesToHttps: isForced,
    origin: originOf('Ingress', ingress, at),
    order: '',
  }
  if (isHttpAllowed) draft.addRoute('http', host, route)
  if (secureHosts.has(host)) draft.addRoute('https', host, { ...route, upgradesToHttps: false })
}

const NO_HOSTS: ReadonlySet<string> = new Set()

function* addTls(
  draft: DraftSink,
  objects: Objects,
  ingress: Immutable<Ingress>,
  owns: (host: string) => boolean,
): Parts<ReadonlySet<string>> {
  const { namespace = '', annotations } = ingress.metadata
  const hosts = new Set<string>()
  for (const [index, { secretName = '', hosts: names = [] }] of (ingress.spec?.tls ?? []).entries()) {
    const at = `spec.tls[${index}]`
    if (index % PART === PART - 1) yield
    if (secretName === '') continue
    const found = findCertificate(objects, secretKey(secretName, namespace), namespace)
    const { certificate, fault } = found
    if (fault !== undefined) {
      const effect = certificate === undefined ? 'its hosts are not served over HTTPS' : STILL_SERVED
      const message = `${at}: Secret ${secretName} cannot be used: ${fault}; ${effect}`
      report(draft, ingress, found.isForbidden === true ? 'DelegationNotPermitted' : 'SecretNotValid', message)
    }
    if (certificate === undefined) continue
    const minVersion: TlsVersion = annotation(annotations, 'tls-minimum-protocol-version') === '1.3' ? '1.3' : '1.2'
    const maxVersion: TlsVersion =
      annotation(annotations, 'tls-maximum-protocol-version') === '1.2' && minVersion === '1.2' ? '1.2' : '1.3'
    for (const [number, name] of names.entries()) {
      if (number % PART === PART - 1) yield
      const host = hostName(name)
      // The first entry of a host decides.
      if (host === undefined || hosts.has(host) || !owns(host)) continue
      const tls = { certificate: draft.addCertificate(certificate), minVersion, maxVersion }
      draft.claimTls(host, tls, originOf('Ingress', ingress, at))
      hosts.add(host)
    }
  }
  return hosts
}

const REGEX_CHARACTERS = /[\^+*[\]%]/

function pathMatch(path: string, pathType: string): PathMatch {
  switch (pathType) {
    case 'Exact':
      return { kind: 'exact', value: path }
    case 'Prefix': {
      if (path === '/') return { kind: 'prefix', value: '/' }
      return { kind: 'segment', value: withoutTrailingSlashes(path) || '/' }
    }
    default:
      return REGEX_CHARACTERS.test(path) ? { kind: 'regex', value: path } : { kind: 'prefix', value: path }
  }
}

function forward(
  draft: DraftSink,
  objects: Objects,
  settings: BuildSettings,
  policy: IngressPolicy,
  ingress: Immutable<Ingress>,
  { service }: Immutable<IngressBackend>,
  path: PathMatch,
  at: string,
): Action {
  if (service === undefined) {
    report(draft, ingress, 'UnsupportedBackend', `${at}: only Services can be backends; requests are answered with 503`)
    return { kind: 'direct', status: 503, body: '' }
  }
  const namespace = ingress.metadata.namespace ?? ''
  const port = service.port?.number ?? service.port?.name ?? ''
  const resolved = resolveService(objects, settings, `${namespace}/${service.name}`, port)
  if ('fault' in resolved) {
    const message = `${at}: ${resolved.fault}; requests are answered with 503`
    report(draft, ingress, 'ServiceUnresolvedReference', message)
    return { kind: 'direct', status: 503, body: '' }
  }
  const protocol = protocolOf(resolved)
  const cluster = clusterOf(resolved, settings, {
    protocol,
    balancing: 'roundRobin',
    ...(protocol === 'tls' || protocol === 'h2' ? { tls: {} } : {}),
  })
  const { retry, timeoutMs, idleTimeoutMs, websocketPaths } = policy
  return {
    kind: 'forward',
    backends: [{ cluster: draft.addCluster(cluster), weight: 1 }],
    mirrors: NONE,
    hash: NONE,
    ...(retry !== undefined && { retry }),
    timeoutMs,
    idleTimeoutMs,
    hasWebsocket: websocketPaths.has(path.value) || websocketPaths.has(`${path.value}/`),
  }
}

/** What the annotations of an Ingress say about all of its paths: read once, because they may be as long as 256 KiB. */
interface IngressPolicy {
  readonly retry: Retry | undefined
  readonly timeoutMs: number
  readonly idleTimeoutMs: number
  readonly websocketPaths: ReadonlySet<string>
}

function policyOf({ metadata: { annotations } }: Immutable<Ingress>, settings: BuildSettings): IngressPolicy {
  const timeout = parseTimeout(
    annotation(annotations, 'response-timeout') ?? annotation(annotations, 'request-timeout'),
    settings.timeoutMs,
  )
  const idle = parseTimeout(annotation(annotations, 'idle-timeout'), DEFAULT_IDLE_MS)
  return {
    retry: retryOf(annotations),
    // As in Contour, an unreadable timeout is the safest: none.
    timeoutMs: typeof timeout === 'number' ? timeout : 0,
    idleTimeoutMs: typeof idle === 'number' ? idle : 0,
    websocketPaths: websocketPathsOf(annotation(annotations, 'websocket-routes')),
  }
}

const NO_PATHS: ReadonlySet<string> = new Set()

function websocketPathsOf(text: string | undefined): ReadonlySet<string> {
  return text === undefined ? NO_PATHS : new Set(text.split(',').map((each) => each.trim()))
}

export const DEFAULT_IDLE_MS = 300_000

function retryOf(annotations: Annotations): Retry | undefined {
  const on = annotation(annotations, 'retry-on')
  if (on === undefined || on === '') return undefined
  const count = Number(annotation(annotations, 'num-retries') ?? '1')
  const perTry = parseGoDuration(annotation(annotations, 'per-try-timeout') ?? '')
  return {
    count: Number.isInteger(count) ? (count < 0 ? 0 : Math.max(count, 1)) : 1,
    on: on.split(',').map((each) => each.trim()),
    statusCodes: [],
    ...(perTry !== undefined && perTry > 0 && { perTryTimeoutMs: perTry }),
  }
}

type Annotations = Readonly<Record<string, string>> | undefined

function annotation(annotations: Annotations, name: string): string | undefined {
  return annotations?.[`projectcontour.io/${name}`]
}

function report(draft: DraftSink, ingress: Immutable<Ingress>, reason: string, message: string): void {
  draft.report(findingOf(ingress, reason, message))
}

function findingOf({ metadata }: Immutable<Ingress>, reason: string, message: string): Finding {
  const { namespace = '', name = '' } = metadata
  return { origin: { kind: 'Ingress', namespace, name }, reason, message }
}
