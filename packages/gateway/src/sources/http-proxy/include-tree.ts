/**
 * How many routes and regular expressions an HTTPProxy has, with everything that it includes, and how large the routes are:
 * counted before they are made, because includes multiply. A tree is counted once, however often it is included.
 */
import { HTTPProxy } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import { MAX_INCLUDES } from '../../draft/limits.ts'
import type { Parts } from '../../draft/turns.ts'
import { isServedClass } from '../ingress-class.ts'

type Proxy = Immutable<HTTPProxy>

/** The depth of includes: deeper trees are refused rather than exhausting the stack. */
export const MAX_DEPTH = 64

export interface TreeSize {
  readonly routes: number
  /** Of JSON: the routes, each with the conditions of all includes that lead to it. */
  readonly bytes: number
  /** Followed from the root on; more than MAX_INCLUDES are not counted to the end. */
  readonly includes: number
}

interface CountedSize extends TreeSize {
  /** The same wherever it is included: it has no cycle, and is not too deep. */
  readonly isFixed: boolean
}

export class IncludeTree {
  readonly #objects: Objects
  readonly #settings: BuildSettings
  readonly #sizes = new Map<string, CountedSize>()

  constructor(objects: Objects, settings: BuildSettings) {
    this.#objects = objects
    this.#settings = settings
  }

  /** Throws on an object that cannot be read. */
  count(key: string, proxy: Proxy): Parts<TreeSize> {
    return this.#count(key, proxy, [], { left: MAX_INCLUDES })
  }

  /** Of an HTTPProxy without includes, as most are. */
  countOwn(proxy: Proxy): TreeSize | undefined {
    const { routes = [], includes = [] } = proxy.spec ?? {}
    return includes.length > 0 ? undefined : { routes: routes.length, bytes: bytesOf(proxy).routes, includes: 0 }
  }

  /** @param budget of includes that have no known size */
  *#count(key: string, proxy: Proxy, visited: readonly string[], budget: { left: number }): Parts<CountedSize> {
    const known = this.#sizes.get(key)
    if (known !== undefined) return known
    if (visited.includes(key) || visited.length >= MAX_DEPTH)
      return { routes: 0, bytes: 0, includes: 0, isFixed: false }
    if (budget.left-- <= 0) return { routes: 0, bytes: 0, includes: Infinity, isFixed: false }
    yield
    const { routes: own = [], includes: list = [] } = proxy.spec ?? {}
    const ownBytes = bytesOf(proxy)
    let [routes, bytes, includes, isFixed] = [own.length, ownBytes.routes, 0, true]
    const { namespace = '' } = proxy.metadata
    const path = [...visited, key]
    for (const [index, include] of list.entries()) {
      const childKey = includedKey(include, namespace)
      const child = this.#objects.get(HTTPProxy, childKey)
      const isIncluded = child !== undefined && isServedClass(child, this.#settings) && !hasHost(child)
      // One that is not found is a route that answers 502.
      const size = isIncluded ? yield* this.#count(childKey, child, path, budget) : MISSING
      routes += size.routes
      bytes += size.bytes + size.routes * (ownBytes.conditions[index] ?? 0)
      includes += size.includes + 1
      isFixed &&= size.isFixed
      if (includes > MAX_INCLUDES) break
    }
    const size = { routes, bytes, includes, isFixed }
    if (isFixed) this.#sizes.set(key, size)
    return size
  }
}

const MISSING: CountedSize = { routes: 1, bytes: 0, includes: 0, isFixed: true }

interface OwnBytes {
  readonly routes: number
  /** Of each include. */
  readonly conditions: readonly number[]
}

/** Of the objects as they are: they are immutable, and most are the same in the next build. */
const known = new WeakMap<Proxy, OwnBytes>()

function bytesOf(proxy: Proxy): OwnBytes {
  let bytes = known.get(proxy)
  if (bytes === undefined) {
    const { routes = [], includes = [] } = proxy.spec ?? {}
    bytes = {
      routes: JSON.stringify(routes).length,
      conditions: includes.map(({ conditions = [] }) => JSON.stringify(conditions).length),
    }
    known.set(proxy, bytes)
  }
  return bytes
}

export function hasHost({ spec }: Proxy): boolean {
  return spec?.virtualhost !== undefined && spec.virtualhost !== null
}

export function includedKey(
  include: { readonly namespace?: string; readonly name: string },
  namespace: string,
): string {
  return `${include.namespace === undefined || include.namespace === '' ? namespace : include.namespace}/${include.name}`
}

/** Regular expressions of the object itself: paths, header and query conditions, origins. */
export function countPatterns({ spec }: Proxy): number {
  let count = 0
  // Counted before anything is read: what has another type is reported later.
  for (const route of listOf(spec?.routes))
    for (const condition of listOf(route?.conditions)) {
      if (hasText(condition?.regex)) count++
      if (hasText(condition?.header?.regex)) count++
      if (hasText(condition?.queryParameter?.regex)) count++
    }
  for (const include of listOf(spec?.includes))
    for (const condition of listOf(include?.conditions)) {
      if (hasText(condition?.header?.regex)) count++
      if (hasText(condition?.queryParameter?.regex)) count++
    }
  const origins: unknown = spec?.virtualhost?.corsPolicy?.allowOrigin
  return count + (Array.isArray(origins) ? origins.length : 0)
}

function hasText(regex: string | undefined): boolean {
  return regex !== undefined && regex !== ''
}

const NONE: readonly never[] = []

function listOf<T>(list: readonly T[] | undefined): readonly (T | null)[] {
  return Array.isArray(list) ? (list as readonly (T | null)[]) : NONE
}
