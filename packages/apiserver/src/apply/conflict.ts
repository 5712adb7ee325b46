/** Conflicts of an apply with other managers, and their messages. */
import type { FieldSet } from './field-set.ts'
import type { Managers } from './managers.ts'
import { elementText } from './path-element.ts'
import type { Comparison } from './typed-compare.ts'

export interface ApplyConflict {
  manager: string
  apiVersion: string
  operation: 'Apply' | 'Update'
  subresource: string
  /** e.g. `.spec.ports[port=80].name` */
  field: string
  path: readonly string[]
}

export function conflictsOf(managers: Managers, self: string, changes: Comparison): ApplyConflict[] {
  const changed: FieldSet = changes.modified.union(changes.added)
  const conflicts: ApplyConflict[] = []
  for (const [id, { set, manager, apiVersion, operation, subresource }] of managers) {
    if (id === self) continue
    for (const path of set.intersection(changed).paths()) {
      conflicts.push({ manager, apiVersion, operation, subresource, field: path.map(elementText).join(''), path })
    }
  }
  return conflicts
}

/** `"kubectl" using v1`; Apply managers are listed without a version. */
function describeManager({ manager, apiVersion, operation, subresource }: ApplyConflict): string {
  const name = JSON.stringify(manager)
  const where = subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`
  return `${name}${where}${operation === 'Update' ? ` using ${apiVersion}` : ''}`
}

/** The message of the 409 response. */
export function conflictMessage(conflicts: readonly ApplyConflict[]): string {
  const [first] = conflicts
  if (first !== undefined && conflicts.length === 1) {
    return `Apply failed with 1 conflict: conflict with ${describeManager(first)}: ${first.field}`
  }
  const byManager = new Map<string, string[]>()
  for (const conflict of conflicts) {
    const name = describeManager(conflict)
    const fields = byManager.get(name)
    if (fields === undefined) byManager.set(name, [`conflicts with ${name}:`, `- ${conflict.field}`])
    else fields.push(`- ${conflict.field}`)
  }
  const lines = [...byManager].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, texts]) => texts)
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`
}

/** `details.causes` of the 409 response. */
export function conflictCauses(
  conflicts: readonly ApplyConflict[],
): { reason: 'FieldManagerConflict'; message: string; field: string }[] {
  return conflicts.map((conflict) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${describeManager(conflict)}`,
    field: conflict.field,
  }))
}
