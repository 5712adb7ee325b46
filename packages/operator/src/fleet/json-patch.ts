/**
 * RFC 6902 on plain JSON, for the overrides of a policy. Pure: the input is not changed.
 *
 * Guarantee: the result is at most MAX_COPIED_OCTETS longer than the input and the values of the patch together. Each copy
 * of the whole document would otherwise double it.
 */

export interface PatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test' | 'move' | 'copy'
  readonly path: string
  readonly from?: string | undefined
  readonly value?: unknown
}

/** Octets of JSON that the copies of one patch may add, together. */
const MAX_COPIED_OCTETS = 64 * 1024
/** Levels of nesting in a value of a patch, and in what is copied. */
const MAX_LEVELS = 100

export type PatchResult<T> = { readonly value: T } | { readonly index: number; readonly message: string }

export function applyPatch<T>(document: T, patch: readonly PatchOperation[]): PatchResult<T> {
  let value: unknown = structuredClone(document)
  const budget = { leftOctets: MAX_COPIED_OCTETS }
  for (const [index, operation] of patch.entries()) {
    try {
      value = applyOne(value, operation, budget)
    } catch (error) {
      return { index, message: error instanceof Error ? error.message : String(error) }
    }
  }
  return { value: value as T }
}

function applyOne(
  document: unknown,
  { op, path, from = '', value }: PatchOperation,
  budget: { leftOctets: number },
): unknown {
  if (isDeeper(value, MAX_LEVELS)) throw new Error(`the value for ${path} has more than ${MAX_LEVELS} levels`)
  switch (op) {
    case 'add':
      return add(document, parsePointer(path), structuredClone(value))
    case 'remove':
      return remove(document, parsePointer(path))
    case 'replace':
      read(document, parsePointer(path))
      return parsePointer(path).length === 0
        ? structuredClone(value)
        : add(remove(document, parsePointer(path)), parsePointer(path), structuredClone(value))
    case 'move': {
      const moved = read(document, parsePointer(from))
      return add(remove(document, parsePointer(from)), parsePointer(path), moved)
    }
    case 'copy':
      return add(document, parsePointer(path), copyOf(read(document, parsePointer(from)), budget))
    case 'test':
      if (JSON.stringify(read(document, parsePointer(path))) !== JSON.stringify(value))
        throw new Error(`test of ${path} failed`)
      return document
  }
}

function copyOf(value: unknown, budget: { leftOctets: number }): unknown {
  if (isDeeper(value, MAX_LEVELS)) throw new Error(`what is copied has more than ${MAX_LEVELS} levels`)
  budget.leftOctets -= Buffer.byteLength(JSON.stringify(value))
  if (budget.leftOctets < 0) throw new Error(`the copies of the patch have more than ${MAX_COPIED_OCTETS} octets`)
  return structuredClone(value)
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1))
}

function parsePointer(path: string): string[] {
  if (path === '') return []
  if (!path.startsWith('/')) throw new Error(`path ${path} does not start with /`)
  const keys = path
    .slice(1)
    .split('/')
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  const unsafe = keys.find((key) => key === '__proto__' || key === 'constructor' || key === 'prototype')
  if (unsafe !== undefined) throw new Error(`path ${path} is refused`)
  return keys
}

type Container = Record<string, unknown> | unknown[]

function containerOf(document: unknown, keys: readonly string[]): { parent: Container; key: string } {
  const parent = read(document, keys.slice(0, -1))
  if (typeof parent !== 'object' || parent === null) throw new Error(`/${keys.join('/')} has no parent`)
  return { parent: parent as Container, key: keys.at(-1) ?? '' }
}

function read(document: unknown, keys: readonly string[]): unknown {
  let node = document
  for (const key of keys) {
    const isPresent = Array.isArray(node)
      ? indexOf(key, node.length) < node.length
      : typeof node === 'object' && node !== null && Object.hasOwn(node, key)
    if (!isPresent) throw new Error(`/${keys.join('/')} does not exist`)
    node = (node as Record<string, unknown>)[key]
  }
  return node
}

function indexOf(key: string, length: number): number {
  if (key === '-') return length
  if (!/^(0|[1-9][0-9]*)$/.test(key)) throw new Error(`${key} is no index of a list`)
  return Number(key)
}

function add(document: unknown, keys: readonly string[], value: unknown): unknown {
  if (keys.length === 0) return value
  const { parent, key } = containerOf(document, keys)
  if (!Array.isArray(parent)) parent[key] = value
  else {
    const index = indexOf(key, parent.length)
    if (index > parent.length) throw new Error(`/${keys.join('/')} is beyond the end of the list`)
    parent.splice(index, 0, value)
  }
  return document
}

function remove(document: unknown, keys: readonly string[]): unknown {
  if (keys.length === 0) throw new Error('the whole document cannot be removed')
  read(document, keys)
  const { parent, key } = containerOf(document, keys)
  if (Array.isArray(parent)) parent.splice(indexOf(key, parent.length), 1)
  else delete parent[key]
  return document
}
