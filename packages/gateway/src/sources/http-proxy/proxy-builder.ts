/**
 * HTTPProxy v1: roots, includes, and the rules about how much an error removes, as in Contour.
 *
 * Guarantees: a broken route removes the routes of its own object only; an include that cannot be followed answers 502 on
 * its conditions; a host whose certificate cannot be used is not served at all, neither over HTTPS nor over HTTP.
 */
import { byAge } from '@seamark/dialects'
import { messageOf } from '@seamark/kube'
import { HTTPProxy, type VirtualHost } from '@seamark/kube/contour'
import { keyOf, type Immutable } from '@seamark/kube/object'
import { describeOrigin, type Draft } from '../../draft/draft.ts'
import { type BuildSettings, type Objects } from '../../draft/input.ts'
import type { StatusIntent } from '../../draft/status-intent.ts'
import { runStep, type DraftSink, type Step, type StepRecords, type StepTarget } from '../../draft/step.ts'
import { isServedClass } from '../ingress-class.ts'
import { addRoot, type Proxy, type RootInput } from './root-proxy.ts'
import { ProxyVerdict, validIntent } from './verdict.ts'

/** What the step of a root changes. */
interface RootTarget extends StepTarget {
  readonly verdicts: Map<string, ProxyVerdict>
  readonly included: Set<string>
}

const records: StepRecords<RootTarget> = new WeakMap()

export class ProxyBuilder {
  readonly #objects: Objects
  readonly #settings: BuildSettings
  readonly #proxies: ReadonlyMap<string, Proxy>
  readonly #target: RootTarget

  constructor(draft: Draft, objects: Objects, settings: BuildSettings) {
    this.#objects = objects
    this.#settings = settings
    this.#target = { draft, verdicts: new Map(), included: new Set() }
    const served = objects.list(HTTPProxy).filter((proxy) => isServedClass(proxy, settings))
    this.#proxies = new Map(served.toSorted(byAge(HTTPProxy)).map((proxy) => [keyOf(proxy), proxy]))
  }

  build(): void {
    const holders = new Map<string, Proxy[]>()
    for (const proxy of this.#proxies.values()) {
      const fqdn = fqdnOf(proxy)
      if (fqdn === '') continue
      const same = holders.get(fqdn)
      if (same === undefined) holders.set(fqdn, [proxy])
      else same.push(proxy)
    }
    for (const [key, proxy] of this.#proxies) {
      const { virtualhost } = proxy.spec ?? {}
      if (virtualhost === undefined || virtualhost === null) continue
      const same = holders.get(fqdnOf(proxy)) ?? []
      if (same.length > 1) {
        const names = same.map(keyOf).toSorted().join(', ')
        const message = `fqdn "${fqdnOf(proxy)}" is used in multiple HTTPProxies: ${names}`
        this.#verdict(key, proxy).error('VirtualHostError', 'DuplicateVhost', message)
      } else {
        try {
          this.#addRoot(key, proxy, virtualhost)
        } catch (error) {
          const message = `the HTTPProxy or one that it includes cannot be read: ${messageOf(error)}`
          this.#verdict(key, proxy).error('SpecError', 'Unreadable', message)
        }
      }
    }
    for (const [key, proxy] of this.#proxies) {
      const hasHost = proxy.spec?.virtualhost !== undefined && proxy.spec.virtualhost !== null
      if (hasHost || this.#target.included.has(key)) continue
      const message = 'this HTTPProxy is not part of a delegation chain from a root HTTPProxy'
      this.#verdict(key, proxy).error('Orphaned', 'Orphaned', message)
    }
  }

  /** Matches that another kind or object took are warnings: the HTTPProxy itself is valid. */
  reportConflicts(): void {
    for (const { host, winner, loser } of this.#target.draft.conflicts) {
      if (loser.origin.kind !== 'HTTPProxy') continue
      const key = `${loser.origin.namespace}/${loser.origin.name}`
      const proxy = this.#proxies.get(key)
      if (proxy === undefined) continue
      const message = `${loser.origin.at}: ${host}${loser.match.path.value} is served by ${describeOrigin(winner.origin)}, which has the same match`
      this.#verdict(key, proxy).warn('RouteConflict', 'MatchTaken', message)
    }
  }

  intents(): StatusIntent[] {
    const { verdicts } = this.#target
    const intents: StatusIntent[] = []
    for (const [key, proxy] of this.#proxies) intents.push(verdicts.get(key)?.toIntent() ?? validIntent(proxy))
    return intents
  }

  #verdict(key: string, proxy: Proxy): ProxyVerdict {
    return verdictIn(this.#target.verdicts, key, proxy)
  }

  #addRoot(key: string, proxy: Proxy, virtualhost: Immutable<VirtualHost>): void {
    const settings = this.#settings
    const context = { objects: this.#objects, settings, target: this.#target }
    runStep(records, proxy, context, (step) => {
      const root = new RootStep(step, settings, proxy)
      try {
        addRoot(root, key, proxy, virtualhost)
      } finally {
        root.end()
      }
    })
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

  end(): void {
    for (const verdict of [this.#verdict, ...(this.#others?.values() ?? [])])
      if (!verdict.isEmpty)
        this.#step.act(({ verdicts }) => verdictIn(verdicts, keyOf(verdict.proxy), verdict.proxy).merge(verdict))
  }
}

function verdictIn(verdicts: Map<string, ProxyVerdict>, key: string, proxy: Proxy): ProxyVerdict {
  let verdict = verdicts.get(key)
  if (verdict === undefined) verdicts.set(key, (verdict = new ProxyVerdict(proxy)))
  return verdict
}

function fqdnOf({ spec }: Proxy): string {
  const fqdn: unknown = spec?.virtualhost?.fqdn
  return typeof fqdn === 'string' ? fqdn.toLowerCase() : ''
}
