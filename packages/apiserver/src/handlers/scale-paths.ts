/** The replica paths of a kind: how they are read, and what they must contain in custom resources. */
import { invalidValue } from '../validation/metadata.ts'
import { type ApiObject, getOwn, isRecord } from '../codec/object-shape.ts'
import type { Resource } from '../resource/resource.ts'
import type { Cause } from '../schema/model.ts'

export const keysOf = (path: string): string[] => path.split('.').filter((key) => key !== '')

/**
 * The replica paths of a custom resource must refer to numbers; a write to the status is checked for the status path.
 */
export function checkScale({ isCustom, scale }: Resource, object: ApiObject, subresource: string): Cause[] {
  if (!isCustom || scale === undefined) return []
  const ofSpec = subresource === 'status' ? [] : [scale.specReplicasPath]
  return [...ofSpec, scale.statusReplicasPath].flatMap((path) => {
    let value: unknown = object
    for (const key of keysOf(path)) {
      if (value === undefined) return []
      if (!isRecord(value)) return [accessor(path, value, 'map[string]interface{}')]
      value = getOwn(value, key)
    }
    if (value === undefined || value === null) return []
    if (!Number.isInteger(value)) return [accessor(path, value, 'int64')]
    return (value as number) < 0 ? [invalidValue(path, value, 'should be a non-negative integer')] : []
  })
}

function accessor(path: string, value: unknown, expected: string): Cause {
  const type =
    typeof value === 'string'
      ? 'string'
      : typeof value === 'boolean'
        ? 'bool'
        : typeof value === 'number'
          ? 'float64'
          : Array.isArray(value)
            ? '[]interface {}'
            : 'map[string]interface {}'
  return invalidValue(
    path,
    0,
    `${path} accessor error: ${typeof value === 'object' ? JSON.stringify(value) : String(value)} is of the type ${type}, expected ${expected}`,
  )
}
