/**
 * Sets of field paths, and their FieldsV1 form in `managedFields`.
 *
 * A node stores the elements that are members and those that only lead to members. Operations return new sets and share
 * unchanged parts; a published set is immutable.
 */
import { parseElement } from './path-element.ts'

export type FieldsV1 = { [element: string]: FieldsV1 }

export class FieldSet {
  readonly members: Set<string>
  readonly children: Map<string, FieldSet>

  constructor(members: Set<string> = new Set(), children: Map<string, FieldSet> = new Map()) {
    this.members = members
    this.children = children
  }

  /** Only while building: adds the path. The empty path, the object itself, is never owned. */
  insert(path: readonly string[]): void {
    if (path.length === 0) return
    const parent = path.slice(0, -1).reduce<FieldSet>((node, element) => node.#descend(element), this)
    parent.members.add(path[path.length - 1]!)
  }

  #descend(element: string): FieldSet {
    let child = this.children.get(element)
    if (child === undefined) this.children.set(element, (child = new FieldSet()))
    return child
  }

  isEmpty(): boolean {
    if (this.members.size > 0) return false
    for (const child of this.children.values()) if (!child.isEmpty()) return false
    return true
  }

  has(path: readonly string[]): boolean {
    const [first, ...rest] = path
    if (first === undefined) return false
    return rest.length === 0 ? this.members.has(first) : (this.children.get(first)?.has(rest) ?? false)
  }

  /** The part below `element`; empty when there is none. */
  below(element: string): FieldSet | undefined {
    const child = this.children.get(element)
    return child === undefined || child.isEmpty() ? undefined : child
  }

  union(other: FieldSet): FieldSet {
    if (other.isEmpty()) return this
    if (this.isEmpty()) return other
    const members = new Set(this.members)
    for (const element of other.members) members.add(element)
    const children = new Map(this.children)
    for (const [element, child] of other.children) {
      const existing = children.get(element)
      children.set(element, existing === undefined ? child : existing.union(child))
    }
    return new FieldSet(members, children)
  }

  intersection(other: FieldSet): FieldSet {
    const result = new FieldSet()
    for (const element of this.members) if (other.members.has(element)) result.members.add(element)
    for (const [element, child] of this.children) {
      const common = other.children.get(element)?.intersection(child)
      if (common !== undefined && !common.isEmpty()) result.children.set(element, common)
    }
    return result
  }

  /** Removes exactly the members of `other`. */
  difference(other: FieldSet): FieldSet {
    return this.#subtract(other, false)
  }

  /** Removes the members of `other` and everything below them. */
  differenceWithBelow(other: FieldSet): FieldSet {
    return this.#subtract(other, true)
  }

  #subtract(other: FieldSet, withBelow: boolean): FieldSet {
    if (other.isEmpty()) return this
    const result = new FieldSet()
    for (const element of this.members) if (!other.members.has(element)) result.members.add(element)
    for (const [element, child] of this.children) {
      if (withBelow && other.members.has(element)) continue
      const otherChild = other.children.get(element)
      const rest = otherChild === undefined ? child : child.#subtract(otherChild, withBelow)
      if (!rest.isEmpty()) result.children.set(element, rest)
    }
    return result
  }

  /** All paths in the order of messages: the members of a node first, then their descendants. */
  *paths(prefix: readonly string[] = []): Generator<string[]> {
    for (const element of [...this.members].toSorted()) yield [...prefix, element]
    for (const element of [...this.children.keys()].toSorted()) {
      yield* this.children.get(element)!.paths([...prefix, element])
    }
  }

  toFieldsV1(): FieldsV1 {
    const fields = newFields()
    const elements = new Set(this.members)
    for (const [element, child] of this.children) if (!child.isEmpty()) elements.add(element)
    for (const element of [...elements].toSorted()) {
      const child = this.children.get(element)
      if (child === undefined || child.isEmpty()) {
        fields[element] = {}
      } else {
        const below = child.toFieldsV1()
        fields[element] = this.members.has(element) ? Object.assign(newFields(), { '.': {} }, below) : below
      }
    }
    return fields
  }

  /** Throws SyntaxError on an element that cannot be parsed. */
  static fromFieldsV1(fields: unknown): FieldSet {
    return readFields(fields).set
  }
}

/** Elements begin with a letter and a colon, so no key can reach a prototype. */
function newFields(): FieldsV1 {
  return {}
}

function readFields(fields: unknown): { set: FieldSet; isMember: boolean } {
  const set = new FieldSet()
  if (typeof fields !== 'object' || fields === null) return { set, isMember: true }
  let isMember = false
  let isLeaf = true
  for (const [key, value] of Object.entries(fields)) {
    if (key === '.') {
      isMember = true
      continue
    }
    const element = parseElement(key)
    if (element === undefined) continue
    isLeaf = false
    const child = readFields(value)
    if (child.isMember) set.members.add(element)
    if (child.set.members.size > 0 || child.set.children.size > 0) set.children.set(element, child.set)
  }
  return { set, isMember: isMember || isLeaf }
}
