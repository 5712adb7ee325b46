/**
 * HTTPProxy v1: roots, includes, and the rules about how much an error removes, as in Contour.
 *
 * Guarantees: a broken route removes the routes of its own object only; an include that cannot be followed answers 502 on
 * its conditions; a host whose certificate cannot be used is not served at all, neither over HTTPS nor over HTTP.
 */
import { byAge } from '@seamark/dialects'
import { messageOf } from '@seamark/kube'
import { HTTPProxy, type VirtualHost } from '@seamark/kube/contour'
import { keyOf, type Immutable, type Key, type Kind, type Obj } from '@seamark/kube/object'
import type { Draft } from '../../draft/draft.ts'
import { describeOrigin } from '../../draft/origin.ts'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import type { StatusIntent } from '../../draft/status-intent.ts'
import {
  runStep,
  type DraftSink,
  type Step,
  type StepContext,
  type StepRecords,
  type StepTarget,
} from '../../draft/step.ts'
import { Allowance, MAX_INCLUDES } from '../../draft/limits.ts'
import type { Parts } from '../../draft/turns.ts'
import type { Certificate } from '../../ir/model.ts'
import { isServedClass } from '../ingress-class.ts'
import { countPatterns, IncludeTree } from './include-tree.ts'
import { nameRefusal } from './name-refusal.ts'
import { addRoot, type Proxy, type RootInput } from './root-proxy.ts'
import { ProxyVerdict, validIntent } from './verdict.ts'

/** What the step of a root changes. */
interface RootTarget extends StepTarget {
  readonly verdicts: Map<string, ProxyVerdict>
  readonly included: Set<string>
}

/**
 * Octets of JSON of the routes that are added in one part, and what a root counts for besides. Not a part for each root: whoever
 * waits for a part is resumed with it.
 */
const PART_BYTES = 2_048
const ROOT_BYTES = 128
/** Conflicts that are reported in one part. */
const PART = 200

const records: StepRecords<RootTarget> = new WeakMap()

export class ProxyBuilder {
  readonly #objects: Objects
  readonly #settings: BuildSettings
  readonly #proxies: ReadonlyMap<string, Proxy>
  readonly #target: RootTarget
  readonly #context: StepContext<RootTarget>
  readonly #allowance: Allowance
  /** HTTPProxies with too many regular expressions: they are included without routes. */
  readonly #refused = new Set<string>()

  constructor(draft: Draft, objects: Objects, settings: BuildSettings, allowance: Allowance) {
    this.#settings = settings
    this.#allowance = allowance
    this.#target = { draft, verdicts: new Map(), included: new Set() }
    const served = objects.list(HTTPProxy).filter((proxy) => isServedClass(proxy, settings))
    this.#proxies = new Map(served.toSorted(byAge(HTTPProxy)).map((proxy) => [keyOf(proxy), proxy]))
    this.#objects = new ServedObjects(objects, this.#refused)
    this.#context = { objects: this.#objects, settings, target: this.#target }
  }

  *build(): Parts<void> {
    yield* this.#refuse()
    yield* this.#addRoots()
    yield* this.#reportOrphans()
  }

  *#refuse(): Parts<void> {
    for (const [key, proxy] of this.#proxies) {
      const fault = this.#allowance.takePatterns(namespaceOf(proxy), countPatterns(proxy))
      if (fault === undefined) continue
      this.#refused.add(key)
      this.#verdict(key, proxy).error('SpecError', fault.reason, `${fault.message}; its routes are not served`)
      yield
    }
  }

  *#addRoots(): Parts<void> {
    const holders = this.#holders()
    const tree = new IncludeTree(this.#objects, this.#settings)
    let bytes = 0
    for (const [key, proxy] of this.#proxies) {
      const { virtualhost } = proxy.spec ?? {}
      if (virtualhost === undefined || virtualhost === null) continue
      const names = holders.get(fqdnOf(proxy))
      const refusal = nameRefusal(proxy, this.#settings)
      if (refusal !== undefined) this.#verdict(key, proxy).error(refusal.type, refusal.reason, refusal.message)
      else if (names !== undefined) {
        const message = `fqdn "${fqdnOf(proxy)}" is used in multiple HTTPProxies: ${names}`
        this.#verdict(key, proxy).error('VirtualHostError', 'DuplicateVhost', message)
      } else if (!this.#refused.has(key)) bytes += yield* this.#addCounted(tree, key, proxy, virtualhost)
      // A certificate or a list of origins may take as long as a whole part.
      const isSmall = virtualhost.tls === undefined && virtualhost.corsPolicy === undefined
      bytes += isSmall ? ROOT_BYTES : PART_BYTES
      if (bytes < PART_BYTES) continue
      bytes = 0
      yield
    }
  }

  *#reportOrphans(): Parts<void> {
    for (const [key, proxy] of this.#proxies) {
      const hasHost = proxy.spec?.virtualhost !== undefined && proxy.spec.virtualhost !== null
      if (hasHost || this.#target.included.has(key)) continue
      const message = 'this HTTPProxy is not part of a delegation chain from a root HTTPProxy'
      this.#verdict(key, proxy).error('Orphaned', 'Orphaned', message)
      yield
    }
  }

  /** The names of the roots of each host that has several; those that may not have the host do not count. */
  #holders(): ReadonlyMap<string, string> {
    const first = new Map<string, string>()
    const several = new Map<string, string[]>()
    for (const [key, proxy] of this.#proxies) {
      const fqdn = fqdnOf(proxy)
      if (fqdn === '' || nameRefusal(proxy, this.#settings) !== undefined) continue
      const other = first.get(fqdn)
      const same = several.get(fqdn)
      if (other === undefined) first.set(fqdn, key)
      else if (same === undefined) several.set(fqdn, [other, key])
      else same.push(key)
    }
    return new Map([...several].map(([fqdn, keys]) => [fqdn, listOf(keys.toSorted())]))
  }

  /** Returns the octets of its routes. */
  *#addCounted(tree: IncludeTree, key: string, proxy: Proxy, virtualhost: Immutable<VirtualHost>): Parts<number> {
    try {
      const { routes, bytes, includes } = tree.countOwn(proxy) ?? (yield* tree.count(key, proxy))
      if (includes > MAX_INCLUDES) {
        const message = `the include tree follows more than ${MAX_INCLUDES} includes; the host is not served`
        this.#verdict(key, proxy).error('IncludeError', 'TooManyIncludes', message)
        return 0
      }
      const fault = this.#allowance.takeRoutes(namespaceOf(proxy), routes, bytes)
      if (fault !== undefined) {
        const message = `the HTTPProxy with its includes: ${fault.message}; the host is not served`
        this.#verdict(key, proxy).error('IncludeError', fault.reason, message)
        return 0
      }
      yield* this.#addRoot(key, proxy, virtualhost)
      return bytes
    } catch (error) {
      const message = `the HTTPProxy or one that it includes cannot be read: ${messageOf(error)}`
      this.#verdict(key, proxy).error('SpecError', 'Unreadable', message)
      return 0
    }
  }

  /** Matches that another kind or object took are warnings: the HTTPProxy itself is valid. */
  *reportConflicts(): Parts<void> {
    for (const [index, { host, winner, loser }] of this.#target.draft.conflicts.entries()) {
      if (index % PART === PART - 1) yield
      if (loser.origin.kind !== 'HTTPProxy') continue
      const key = `${loser.origin.namespace}/${loser.origin.name}`
      const proxy = this.#proxies.get(key)
      if (proxy === undefined) continue
      const message = `${loser.origin.at}: ${host}${loser.match.path.value} is served by ${describeOrigin(winner.origin)}, which has the same match`
      this.#verdict(key, proxy).warn('RouteConflict', 'MatchTaken', message)
    }
    for (const { loser, message } of this.#target.draft.tlsConflicts) {
      const key = `${loser.namespace}/${loser.name}`
      const proxy = loser.kind === 'HTTPProxy' ? this.#proxies.get(key) : undefined
      if (proxy !== undefined) this.#verdict(key, proxy).warn('TLSError', 'TLSConflict', message)
    }
  }

  *intents(): Parts<StatusIntent[]> {
    const { verdicts } = this.#target
    const intents: StatusIntent[] = []
    for (const [key, proxy] of this.#proxies) {
      intents.push(verdicts.get(key)?.toIntent() ?? validIntent(proxy))
      if (intents.length % PART === 0) yield
    }
    return intents
  }

  #verdict(key: string, proxy: Proxy): ProxyVerdict {
    return verdictIn(this.#target.verdicts, key, proxy)
  }

  #addRoot(key: string, proxy: Proxy, virtualhost: Immutable<VirtualHost>): Parts<unknown> {
    const { settings } = this.#context
    return runStep(records, proxy, this.#context, (step) => new RootStep(step, settings, proxy).add(key, virtualhost))
  }
}

/** The HTTPProxies in `refused` have no routes. */
class ServedObjects implements Objects {
  readonly #objects: Objects
  readonly #refused: ReadonlySet<string>

  constructor(objects: Objects, refused: ReadonlySet<string>) {
    this.#objects = objects
    this.#refused = refused
  }

  list<T extends Obj>(kind: Kind<T>): readonly Immutable<T>[] {
    return this.#objects.list(kind)
  }

  get<T extends Obj>(kind: Kind<T>, key: Key): Immutable<T> | undefined {
    const found = this.#objects.get(kind, key)
    return found !== undefined && kind.kind === HTTPProxy.kind && this.#refused.has(key) ? withoutRoutes(found) : found
  }

  served(secret: Key): Certificate | undefined {
    return this.#objects.served?.(secret)
  }
}

/** What a root reads and decides, in its step. */
class RootStep implements RootInput {
  readonly draft: DraftSink
  readonly objects: Objects
  readonly settings: BuildSettings
  readonly #step: Step<RootTarget>
  readonly #verdict: ProxyVerdict
  /** Of the HTTPProxies that the root includes; most include none. */
  #others: Map<string, ProxyVerdict> | undefined

  constructor(step: Step<RootTarget>, settings: BuildSettings, root: Proxy) {
    this.#step = step
    this.#verdict = new ProxyVerdict(root)
    this.draft = step
    this.objects = step
    this.settings = settings
  }

  verdictOf(key: string, proxy: Proxy): ProxyVerdict {
    if (proxy === this.#verdict.proxy) return this.#verdict
    return verdictIn((this.#others ??= new Map()), key, proxy)
  }

  markIncluded(key: string): void {
    this.#step.act(({ included }) => void included.add(key))
  }

  *add(key: string, virtualhost: Immutable<VirtualHost>): Parts<void> {
    try {
      yield* addRoot(this, key, this.#verdict.proxy, virtualhost)
    } finally {
      this.#end()
    }
  }

  #end(): void {
    this.#pass(this.#verdict)
    for (const verdict of this.#others?.values() ?? []) this.#pass(verdict)
  }

  #pass(verdict: ProxyVerdict): void {
    if (verdict.isEmpty) return
    this.#step.act(({ verdicts }) => verdictIn(verdicts, keyOf(verdict.proxy), verdict.proxy).merge(verdict))
  }
}

function verdictIn(verdicts: Map<string, ProxyVerdict>, key: string, proxy: Proxy): ProxyVerdict {
  let verdict = verdicts.get(key)
  if (verdict === undefined) verdicts.set(key, (verdict = new ProxyVerdict(proxy)))
  return verdict
}

const emptied = new WeakMap<object, object>()

/** The same object for the same HTTPProxy: a step compares what it reads. */
function withoutRoutes<T extends object>(proxy: T): T {
  let empty = emptied.get(proxy)
  if (empty === undefined) {
    const { spec = {} } = proxy as { spec?: object }
    emptied.set(proxy, (empty = { ...proxy, spec: { ...spec, routes: [], includes: [] } }))
  }
  return empty as T
}

/** Most names that a message lists. */
const SHOWN_NAMES = 10

function listOf(keys: readonly string[]): string {
  const more = keys.length > SHOWN_NAMES ? ` and ${keys.length - SHOWN_NAMES} more` : ''
  return `${keys.slice(0, SHOWN_NAMES).join(', ')}${more}`
}

function namespaceOf({ metadata }: Proxy): string {
  return metadata.namespace ?? ''
}

function fqdnOf({ spec }: Proxy): string {
  const fqdn: unknown = spec?.virtualhost?.fqdn
  return typeof fqdn === 'string' ? fqdn.toLowerCase() : ''
}
