/**
 * What `build` reads: the objects of the caches, the settings, and a record of every object it looked at. The record (found
 * or missed) decides which later changes need another build.
 */
import type { Grants } from '@seamark/dialects'
import type { Immutable, Key, Kind, Obj } from '@seamark/kube/object'
import type { ListenAddresses } from '../ir/listen-addresses.ts'
import type { Certificate } from '../ir/model.ts'
import { withoutNulls } from './nulls.ts'

/** A consistent view of all objects; `Reader` of the runtime's caches is one. */
export interface Objects {
  get<T extends Obj>(kind: Kind<T>, key: Key): Immutable<T> | undefined
  list<T extends Obj>(kind: Kind<T>): readonly Immutable<T>[]
  /** The certificate that is served for a Secret now; it stays in use while the Secret is broken. @default none */
  readonly served?: (secret: Key) => Certificate | undefined
}

export interface BuildSettings {
  /** `cluster`: Services behind routes; `global`: the addresses of member clusters behind the hosts of GlobalIngresses. */
  readonly mode: 'cluster' | 'global'
  /** Classes of Ingress and HTTPProxy that are served. */
  readonly ingressClassNames: readonly string[]
  /** Objects without a class are served too. */
  readonly servesUnclassified: boolean
  /** Namespaces that may contain root HTTPProxies; empty: all. */
  readonly rootNamespaces: readonly string[]
  /** The names that each namespace may use; what others declare contributes nothing. @default every name */
  readonly grants: Grants
  /** The Gateway that this data plane implements, `namespace/name`; undefined: all Gateways of our GatewayClasses. */
  readonly gateway?: Key
  /** `spec.controllerName` of our GatewayClasses. */
  readonly controllerName: string
  /** Services of type ExternalName are resolved: every tenant can then reach any address the data plane can. */
  readonly allowsExternalNames: boolean
  /** Addresses of member clusters may be on this machine: for the playground and tests. */
  readonly allowsLoopback: boolean
  /** Where listeners are bound: two ports of Gateways cannot have one address. */
  readonly listen: ListenAddresses
  readonly connectTimeoutMs: number
  /** Default of the response timeout. */
  readonly timeoutMs: number
}

export const CONTROLLER_NAME = 'seamark.io/gateway-controller'

export const BUILD_DEFAULTS: BuildSettings = {
  mode: 'cluster',
  ingressClassNames: ['contour', 'seamark'],
  servesUnclassified: true,
  rootNamespaces: [],
  grants: [],
  controllerName: CONTROLLER_NAME,
  allowsExternalNames: false,
  allowsLoopback: false,
  listen: { http: { host: '::', port: 8_080 }, https: { host: '::', port: 8_443 } },
  connectTimeoutMs: 2_000,
  timeoutMs: 15_000,
}

/** `Kind namespace/name` of every object that a build asked for by name. */
export type Refs = ReadonlySet<string>

export function refOf(kind: Kind, key: Key): string {
  return `${kind.kind} ${key}`
}

/**
 * Reads by name are recorded in `refs`; members that are null are absent. A class: compiled code that calls it holds for the next
 * build too.
 */
export class RecordingReader implements Objects {
  readonly #objects: Objects
  readonly #refs: Set<string>
  readonly #lists = new Map<Kind, readonly Immutable<Obj>[]>()

  constructor(objects: Objects, refs: Set<string>) {
    this.#objects = objects
    this.#refs = refs
  }

  list<T extends Obj>(kind: Kind<T>): readonly Immutable<T>[] {
    let list = this.#lists.get(kind)
    if (list === undefined) this.#lists.set(kind, (list = this.#objects.list(kind).map((each) => withoutNulls(each))))
    return list as readonly Immutable<T>[]
  }

  get<T extends Obj>(kind: Kind<T>, key: Key): Immutable<T> | undefined {
    this.#refs.add(refOf(kind, key))
    const found = this.#objects.get(kind, key)
    return found === undefined ? undefined : withoutNulls(found)
  }

  served(secret: Key): Certificate | undefined {
    return this.#objects.served?.(secret)
  }
}
