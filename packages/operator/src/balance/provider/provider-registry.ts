/**
 * The DNS providers of a `seamark dnslb` process, from DNSProvider objects and from the environment: which one serves a name.
 *
 * Choice (pure, `chooseProvider`): providers whose scope admits the namespace, then the longest zone that contains the name,
 * then the smallest provider name. A zone is served by one provider only: the older one.
 */
import { type Aged, compareAge } from '@seamark/dialects'
import type { Engine } from '../../records/engine.ts'
import { compareText, isWithin } from '../../rrset/rrset.ts'

export type ProviderScope =
  | { readonly type: 'Cluster' }
  | { readonly type: 'Namespace'; readonly namespace: string }
  | { readonly type: 'Selected'; readonly namespaces: readonly string[] }

export interface RegisteredProvider {
  /** `<namespace>/<name>` of the DNSProvider, or `default-<type>`. */
  readonly name: string
  readonly scope: ProviderScope
  /** Canonical zone names. */
  readonly zones: readonly string[]
  /** Of the object; static providers are the oldest. */
  readonly age: Aged
  readonly engine: Engine
}

export type ProviderChoice<P> =
  | { readonly state: 'ready'; readonly provider: P; readonly zone: string }
  | { readonly state: 'missing' }
  | { readonly state: 'outOfScope'; readonly provider: string }

type Served = Pick<RegisteredProvider, 'name' | 'scope' | 'zones'>

export function chooseProvider<P extends Served>(
  name: string,
  namespace: string,
  providers: Iterable<P>,
): ProviderChoice<P> {
  const matches = [...providers]
    .flatMap((provider) => {
      const zone = longestZone(name, provider.zones)
      return zone === undefined ? [] : [{ provider, zone }]
    })
    .sort((a, b) => b.zone.length - a.zone.length || compareText(a.provider.name, b.provider.name))
  const admitted = matches.find(({ provider }) => isInScope(provider.scope, namespace))
  if (admitted !== undefined) return { state: 'ready', ...admitted }
  const [first] = matches
  return first === undefined ? { state: 'missing' } : { state: 'outOfScope', provider: first.provider.name }
}

function longestZone(name: string, zones: readonly string[]): string | undefined {
  return zones.filter((zone) => isWithin(name, zone)).sort((a, b) => b.length - a.length)[0]
}

function isInScope(scope: ProviderScope, namespace: string): boolean {
  switch (scope.type) {
    case 'Cluster':
      return true
    case 'Namespace':
      return scope.namespace === namespace
    case 'Selected':
      return scope.namespaces.includes(namespace)
  }
}

export class ProviderRegistry {
  readonly #providers = new Map<string, RegisteredProvider>()
  /** DNSProviders that were reconciled at least once: before that, a name without a provider is undecided. */
  readonly #seen = new Set<string>()
  readonly #listeners = new Set<() => void>()
  /** By provider: another installation writes with our identity. */
  readonly #conflicts = new Map<string, string>()
  readonly #conflictListeners = new Set<(provider: string) => void>()

  get providers(): readonly RegisteredProvider[] {
    return [...this.#providers.values()]
  }

  find(name: string): RegisteredProvider | undefined {
    return this.#providers.get(name)
  }

  choose(name: string, namespace: string): ProviderChoice<RegisteredProvider> {
    return chooseProvider(name, namespace, this.#providers.values())
  }

  /** A zone that an older provider serves already. */
  findDuplicate(
    { name, age }: Pick<RegisteredProvider, 'name' | 'age'>,
    zones: readonly string[],
  ): { readonly zone: string; readonly other: string } | undefined {
    for (const other of this.#providers.values()) {
      if (other.name === name) continue
      const zone = zones.find((each) => other.zones.includes(each))
      if (zone !== undefined && compareAge(other.age, age) < 0) return { zone, other: other.name }
    }
    return undefined
  }

  /** Replaces the provider of that name. Returns the providers that are removed because they share a zone with it. */
  register(provider: RegisteredProvider): readonly RegisteredProvider[] {
    const removed = this.providers.filter(
      (other) => other.name !== provider.name && other.zones.some((zone) => provider.zones.includes(zone)),
    )
    for (const { name } of removed) this.#providers.delete(name)
    this.#providers.set(provider.name, provider)
    this.#notify()
    return removed
  }

  unregister(name: string): RegisteredProvider | undefined {
    const found = this.#providers.get(name)
    if (this.#providers.delete(name)) this.#notify()
    return found
  }

  markSeen(name: string): void {
    if (this.#seen.has(name)) return
    this.#seen.add(name)
    this.#notify()
  }

  hasSeen(name: string): boolean {
    return this.#seen.has(name)
  }

  forget(name: string): void {
    this.#seen.delete(name)
    this.#conflicts.delete(name)
  }

  conflictOf(name: string): string | undefined {
    return this.#conflicts.get(name)
  }

  /** True if it is another one than before. */
  setConflict(name: string, message: string | undefined): boolean {
    if (this.#conflicts.get(name) === message) return false
    if (message === undefined) this.#conflicts.delete(name)
    else this.#conflicts.set(name, message)
    for (const listener of this.#conflictListeners) listener(name)
    return true
  }

  /** Calls the listener with the name of a provider whose conflict changed. Returns the unsubscribe function. */
  onConflict(listener: (provider: string) => void): () => void {
    this.#conflictListeners.add(listener)
    return () => this.#conflictListeners.delete(listener)
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }
}
