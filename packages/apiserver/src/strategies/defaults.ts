/** placeholder replaced below */
import type { ApiObject } from '../object-shape.ts'
export function applyKindDefaults(_id: string, _object: ApiObject): void {}
