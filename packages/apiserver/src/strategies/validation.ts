/** placeholder replaced below */
import type { ApiObject } from '../object-shape.ts'
import type { Cause } from '../schema/model.ts'
export function validateKind(_id: string, _object: ApiObject, _old: ApiObject | undefined): Cause[] {
  return []
}
