/** The changes that an apply would make to an object, in readable lines: `~ spec.endpoints[0].targets[0]: "a" → "b"`. */
import type { Immutable, Obj } from '@seamark/kube/object'

type Leaves = Map<string, string>

function flatten(value: unknown, path: string, leaves: Leaves): Leaves {
  if (Array.isArray(value)) for (const [index, item] of value.entries()) flatten(item, `${path}[${index}]`, leaves)
  else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) flatten(item, path === '' ? key : `${path}.${key}`, leaves)
  } else leaves.set(path, JSON.stringify(value))
  return leaves
}

/** Compares only the fields that we apply; `removed` lists fields that we own now and no longer apply. */
export function diffApply(
  want: Immutable<Obj>,
  live: Immutable<Obj> | undefined,
  removed: readonly string[] = [],
): string[] {
  const desired = flatten(withoutIdentity(want), '', new Map())
  const present = live === undefined ? new Map<string, string>() : flatten(withoutIdentity(live), '', new Map())
  const lines: string[] = []
  for (const [path, value] of desired) {
    const before = present.get(path)
    if (before === undefined) lines.push(`+ ${path}: ${value}`)
    else if (before !== value) lines.push(`~ ${path}: ${before} → ${value}`)
  }
  // A list that becomes shorter loses its last items.
  for (const [path, value] of present) {
    const list = path.replace(/\[\d+\][^[]*$/, '')
    if (!desired.has(path) && list !== path && [...desired.keys()].some((key) => key.startsWith(`${list}[`)))
      lines.push(`- ${path}: ${value}`)
  }
  for (const path of removed) lines.push(`- ${path}`)
  return lines
}

function withoutIdentity({ apiVersion: _apiVersion, kind: _kind, metadata, ...rest }: Immutable<Obj>): unknown {
  const { annotations, labels, ownerReferences } = metadata
  return {
    metadata: {
      ...(annotations && { annotations }),
      ...(labels && { labels }),
      ...(ownerReferences && { ownerReferences }),
    },
    ...rest,
  }
}
