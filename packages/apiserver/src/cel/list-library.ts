/** Functions on lists: Kubernetes' own, those of cel-go's list extension, and sets. */
import type { Environment } from '@marcbachmann/cel-js'
import { jsonEqual } from '../codec/json-equal.ts'
import { spend } from './budget.ts'
import { fail, Namespace, OPTIONALS } from './library-kit.ts'

class SetsNamespace extends Namespace {
  readonly kind = 'sets'
}
class ListsNamespace extends Namespace {
  readonly kind = 'lists'
}

type Ordered = string | bigint | number | boolean | Date

/** A duration of the engine has a method for addition. */
type Summand = bigint | number | { addDuration(other: Summand): Summand }

/** Longest list of `lists.range`; kube-apiserver's cost budget ends at about this length. */
const MAX_RANGE = 100_000n

export function registerLists(env: Environment): void {
  const first = (list: Ordered[]): Ordered => list[0] ?? fail('min/max called on empty list')
  env.registerFunction('list.isSorted(): bool', (list: Ordered[]) =>
    list.every((item, i) => i === 0 || list[i - 1]! <= item),
  )
  env.registerFunction('list.sum(): dyn', (list: Summand[]) => (list.length === 0 ? 0n : list.reduce(add)))
  env.registerFunction('list.min(): dyn', (list: Ordered[]) => list.reduce((a, b) => (b < a ? b : a), first(list)))
  env.registerFunction('list.max(): dyn', (list: Ordered[]) => list.reduce((a, b) => (b > a ? b : a), first(list)))
  env.registerFunction('list.indexOf(dyn): int', (list: unknown[], item: unknown) =>
    BigInt(list.findIndex((one) => jsonEqual(one, item))),
  )
  env.registerFunction('list.lastIndexOf(dyn): int', (list: unknown[], item: unknown) =>
    BigInt(list.findLastIndex((one) => jsonEqual(one, item))),
  )
  env.registerFunction('list.sort(): list', (list: Ordered[]) => sortedBy(list, list))
  env.registerFunction('sortedBy(list, list): list', sortedBy)
  env.registerFunction('list.distinct(): list', distinct)
  env.registerFunction('list.reverse(): list', (list: unknown[]) => list.toReversed())
  env.registerFunction('list.flatten(): list', (list: unknown[]) => list.flat())
  env.registerFunction('list.flatten(int): list', (list: unknown[], depth: bigint) =>
    depth < 0n ? fail('level must be non-negative') : list.flat(Number(depth)),
  )
  env.registerFunction('list.slice(int, int): list', slice)
  env.registerFunction('list.first(): optional', (list: unknown[]) => optionalOf(list[0]))
  env.registerFunction('list.last(): optional', (list: unknown[]) => optionalOf(list.at(-1)))
  env
    .registerType('ListsNamespace', ListsNamespace)
    .registerConstant('lists', 'ListsNamespace', new ListsNamespace('ListsNamespace'))
  env.registerFunction('ListsNamespace.range(int): list', (_: unknown, length: bigint) => range(length))
  registerSets(env)
}

function registerSets(env: Environment): void {
  env
    .registerType('SetsNamespace', SetsNamespace)
    .registerConstant('sets', 'SetsNamespace', new SetsNamespace('SetsNamespace'))
  const has = (list: unknown[], item: unknown): boolean => list.some((one) => jsonEqual(one, item))
  const hasAll = (list: unknown[], items: unknown[]): boolean => items.every((item) => has(list, item))
  env.registerFunction('SetsNamespace.contains(list, list): bool', (_: unknown, a: unknown[], b: unknown[]) =>
    hasAll(a, b),
  )
  env.registerFunction(
    'SetsNamespace.equivalent(list, list): bool',
    (_: unknown, a: unknown[], b: unknown[]) => hasAll(a, b) && hasAll(b, a),
  )
  env.registerFunction('SetsNamespace.intersects(list, list): bool', (_: unknown, a: unknown[], b: unknown[]) =>
    b.some((item) => has(a, item)),
  )
}

function add(a: Summand, b: Summand): Summand {
  if (typeof a === 'object') return a.addDuration(b)
  return typeof a === 'bigint' ? a + (b as bigint) : a + (b as number)
}

/** `list` in the order of the keys at the same indices. */
function sortedBy(list: unknown[], keys: Ordered[]): unknown[] {
  spend(list.length)
  const order = [...keys.keys()].toSorted((a, b) => (keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : a - b))
  return order.map((index) => list[index])
}

function distinct(list: unknown[]): unknown[] {
  const found: unknown[] = []
  for (const item of list)
    if (spend(1 + found.length / 10) && !found.some((one) => jsonEqual(one, item))) found.push(item)
  return found
}

function slice(list: unknown[], from: bigint, to: bigint): unknown[] {
  if (from < 0n || to < 0n) fail(`cannot slice(${from}, ${to}), negative indexes not supported`)
  if (from > to) fail(`cannot slice(${from}, ${to}), start index must be less than or equal to end index`)
  if (to > BigInt(list.length)) fail(`cannot slice(${from}, ${to}), list is length ${list.length}`)
  return list.slice(Number(from), Number(to))
}

function range(length: bigint): bigint[] {
  const count = Number(length > MAX_RANGE ? MAX_RANGE : length)
  return spend(count) ? Array.from({ length: Math.max(0, count) }, (_, index) => BigInt(index)) : []
}

function optionalOf(value: unknown): unknown {
  return value === undefined ? OPTIONALS.none() : OPTIONALS.of(value)
}
