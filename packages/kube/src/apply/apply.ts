/**
 * Decides before sending whether a server-side apply would change anything, from the FieldsV1 tree of the own
 * managedFields entry, the desired object and the live object.
 *
 * Place in the flow: `ctx.apply` and `ctx.status` call it, and send nothing for a no-op. Pure except for a parse cache.
 *
 * An apply is a no-op exactly if
 * 1. every owned path is in `want` (otherwise the apply removes it),
 * 2. every path in `want` is owned (otherwise it is new, or another manager has taken it over),
 * 3. at each leaf or atomic node `want` equals `live`, and lists of keyed items are in the same order.
 * Inside an atomic node the server may have added defaults. They cannot be distinguished from a field that was sent
 * before and is now dropped, so the decision is `Undecided`, unless the field is known as a default (`LearnedDefaults`,
 * which records them from responses). The same applies to owner references if another manager also owns some: interned
 * texts do not identify the owner.
 *
 * In a FieldsV1 tree an empty node is a leaf or atomic; `f:` names a field, `k:` a list item by its keys, `v:` a member
 * of a set, `.` the node itself. apiVersion, kind, metadata.name and namespace are never in it.
 */
import type { LearnedDefaults, DefaultPlace } from './learned-defaults.ts'
import { isMasked, parseFields, type Fields, type FieldsItem } from './fields-v1.ts'
import { ownFieldsOf } from '../decode/managed-fields.ts'
import type { Immutable, Kind, Obj } from '../object/object.ts'

export type ApplyDecision =
  | { readonly noop: true }
  | {
      readonly noop: false
      /** `Absent`: no live object; `NotOurs`: no owned fields; `Undecided`: see above. */
      readonly reason: 'Absent' | 'NotOurs' | 'Removes' | 'Adds' | 'Differs' | 'Undecided'
      /** For logs: `.spec.ports[k:{"port":80}].name` */
      readonly path: string
    }

export interface ApplyInput {
  kind: Kind
  /** FieldsV1 text of the own Apply entry; undefined if no field is owned. */
  fields: string | undefined
  want: Immutable<Obj>
  live: Immutable<Obj> | undefined
  defaults?: LearnedDefaults
}

const noop: ApplyDecision = { noop: true }

export function decideApply({ kind, fields, want, live, defaults }: ApplyInput): ApplyDecision {
  if (live === undefined) return { noop: false, reason: 'Absent', path: '' }
  if (fields === undefined) return { noop: false, reason: 'NotOurs', path: '' }
  const { uid } = want.metadata
  if (uid !== undefined && uid !== live.metadata.uid) return { noop: false, reason: 'Differs', path: '.metadata.uid' }
  const isDefault = (place: DefaultPlace) => defaults?.has(kind, place) ?? false
  return compareObject(parseFields(fields), want, live, isDefault) ?? noop
}

/**
 * Records the defaults in a response: `want` was applied by `manager`, and `written` was returned.
 * @param fields FieldsV1 text of the manager's entry, if already known. @default read from `written`
 */
export function learnDefaults(
  defaults: LearnedDefaults,
  kind: Kind,
  want: Immutable<Obj>,
  written: Immutable<Obj>,
  manager: string,
  subresource = '',
  fields = ownFieldsOf(written.metadata.managedFields ?? [], manager)?.get(subresource),
): void {
  if (fields === undefined) return
  compareObject(parseFields(fields), want, written, (place) => {
    defaults.add(kind, place)
    return true
  })
}

type IsDefault = (place: DefaultPlace) => boolean

/** The first difference, or undefined. */
type Found = ApplyDecision | undefined

type Plain = Readonly<Record<string, unknown>>

/** The path from the root; joined only if there is a difference, which is rare. */
type Trail = string[]

function difference(reason: 'Removes' | 'Adds' | 'Differs' | 'Undecided', trail: Trail, below = ''): ApplyDecision {
  return { noop: false, reason, path: trail.join('') + below }
}

/** Fields that FieldsV1 never lists. An intent with a resourceVersion is a precondition, so it is always sent. */
const IDENTITY: ReadonlySet<string> = new Set([
  'name',
  'namespace',
  'uid',
  'creationTimestamp',
  'generation',
  'managedFields',
  'selfLink',
])
const NO_NAMES: ReadonlySet<string> = new Set()

/** Compares the object itself; apiVersion, kind and identity are skipped. */
function compareObject(node: Fields, want: Immutable<Obj>, live: Immutable<Obj>, isDefault: IsDefault): Found {
  const { metadata } = want
  const hasMetadata = Object.entries(metadata).some(([name, value]) => value !== undefined && !IDENTITY.has(name))
  const trail: Trail = []
  for (const name of node.fields.keys()) {
    const isDesired = name === 'metadata' ? hasMetadata : (want as unknown as Plain)[name] !== undefined
    if (!isDesired) return difference('Removes', trail, `.${name}`)
  }
  for (const [name, value] of Object.entries(want)) {
    if (value === undefined || name === 'apiVersion' || name === 'kind' || (name === 'metadata' && !hasMetadata))
      continue
    const child = node.fields.get(name)
    if (child === undefined) return difference('Adds', trail, `.${name}`)
    trail.push('.', name)
    const decision =
      name === 'metadata'
        ? compareFields(child, metadata, live.metadata, trail, isDefault, IDENTITY)
        : compare(child, value, (live as unknown as Plain)[name], trail, isDefault)
    if (decision !== undefined) return decision
    trail.length -= 2
  }
  return undefined
}

function compare(node: Fields, want: unknown, live: unknown, trail: Trail, isDefault: IsDefault): Found {
  if (node.isLeaf) return compareAtomic(want, live, trail, isDefault)
  if (Array.isArray(want)) return compareList(node, want, live, trail, isDefault)
  if (!isPlain(want) || node.items.length + node.values.size > 0) return difference('Differs', trail)
  return compareFields(node, want, live, trail, isDefault)
}

function compareFields(
  node: Fields,
  want: Plain,
  live: unknown,
  trail: Trail,
  isDefault: IsDefault,
  without: ReadonlySet<string> = NO_NAMES,
): Found {
  const current: Plain = isPlain(live) ? live : {}
  for (const name of node.fields.keys()) {
    if (want[name] === undefined) return difference('Removes', trail, `.${name}`)
  }
  for (const name of Object.keys(want)) {
    const value = want[name]
    if (value === undefined || without.has(name)) continue
    const child = node.fields.get(name)
    if (child === undefined) return difference('Adds', trail, `.${name}`)
    trail.push('.', name)
    const decision = compare(child, value, current[name], trail, isDefault)
    if (decision !== undefined) return decision
    trail.length -= 2
  }
  return undefined
}

/** A list whose items are owned individually: a set of scalars, or items with keys. */
function compareList(node: Fields, want: readonly unknown[], live: unknown, trail: Trail, isDefault: IsDefault): Found {
  if (node.fields.size > 0 || !Array.isArray(live)) return difference('Differs', trail)
  const current: readonly unknown[] = live
  const items = assign(node.items, want)
  const places: number[] = []
  for (const [index, value] of want.entries()) {
    if (!isPlain(value)) {
      if (!node.values.has(JSON.stringify(value))) return difference('Adds', trail)
      places.push(current.indexOf(value))
      continue
    }
    const item = items[index]
    if (item === undefined) return difference('Adds', trail)
    const place = current.findIndex((each) => isPlain(each) && isItem(item.keys, value, each))
    const depth = trail.push('[]')
    const decision = compare(item.node, value, current[place], trail, isDefault)
    if (decision !== undefined) {
      return withKeys(decision, trail.slice(0, depth - 1), { ...item.keys, ...pick(value, item.keys) })
    }
    trail.pop()
    places.push(place)
  }
  const scalars = want.filter((value) => !isPlain(value))
  const isLeftOut = node.values.size > new Set(scalars).size || node.items.length > want.length - scalars.length
  if (isLeftOut) return difference('Removes', trail)
  // There are items of other managers, and the text does not identify the owner of each.
  const isAmbiguous =
    current.length > want.length && items.some((item) => Object.values(item?.keys ?? {}).some(isMasked))
  if (isAmbiguous) return difference('Undecided', trail)
  const isInOrder = places.every((place, index) => place > (places[index - 1] ?? -1))
  return isInOrder ? undefined : difference('Differs', trail)
}

/** The owned item of each wanted one. Items with all keys are assigned first; the others get the remaining ones. */
function assign(items: readonly FieldsItem[], want: readonly unknown[]): (FieldsItem | undefined)[] {
  const left = new Set(items)
  const chosen: (FieldsItem | undefined)[] = want.map(() => undefined)
  for (const isStrict of [true, false]) {
    for (const [index, value] of want.entries()) {
      if (chosen[index] !== undefined || !isPlain(value)) continue
      const item = [...left].find(({ keys }) => {
        return matchesKeys(keys, value) && (!isStrict || Object.keys(keys).every((name) => value[name] !== undefined))
      })
      if (item === undefined) continue
      left.delete(item)
      chosen[index] = item
    }
  }
  return chosen
}

/** A key missing from the value was defaulted by the server, and matches. */
function matchesKeys(keys: Plain, value: Plain): boolean {
  return Object.entries(keys).every(([name, key]) => {
    const own = value[name]
    return own === undefined || isMasked(key) || own === key
  })
}

/** Whether `live` is the item described by `want`: by its own keys, and by the owned ones that it omits. */
function isItem(keys: Plain, want: Plain, live: Plain): boolean {
  for (const name in keys) {
    const key = want[name] ?? keys[name]
    const own = live[name]
    if (own !== undefined && own !== key && !isMasked(key)) return false
  }
  return true
}

/** Adds the keys of the item to the path. */
function withKeys(decision: ApplyDecision, trail: Trail, keys: Plain): ApplyDecision {
  if (decision.noop) return decision
  const path = trail.join('')
  return { ...decision, path: `${path}[${JSON.stringify(keys)}]${decision.path.slice(path.length + 2)}` }
}

function pick(value: Plain, keys: Plain): Plain {
  return Object.fromEntries(
    Object.keys(keys).flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])),
  )
}

function compareAtomic(want: unknown, live: unknown, trail: Trail, isDefault: IsDefault): Found {
  if (Array.isArray(want)) {
    if (!Array.isArray(live) || live.length !== want.length) return difference('Differs', trail)
    trail.push('[]')
    for (let index = 0; index < want.length; index++) {
      const decision = compareAtomic(want[index], live[index], trail, isDefault)
      if (decision !== undefined) return decision
    }
    trail.pop()
    return undefined
  }
  if (!isPlain(want)) return (want ?? null) === (live ?? null) ? undefined : difference('Differs', trail)
  if (!isPlain(live)) return difference('Differs', trail)
  for (const name of Object.keys(want)) {
    if (want[name] === undefined) continue
    trail.push('.', name)
    const decision = compareAtomic(want[name], live[name], trail, isDefault)
    if (decision !== undefined) return decision
    trail.length -= 2
  }
  for (const name of Object.keys(live)) {
    if (want[name] !== undefined) continue
    const path = `${trail.join('')}.${name}`
    const siblings = Object.keys(want).toSorted().join(',')
    if (!isDefault({ path, siblings, value: live[name] })) return difference('Undecided', trail, `.${name}`)
  }
  return undefined
}

function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
