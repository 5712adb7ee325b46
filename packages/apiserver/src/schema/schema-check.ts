/** A check that is made once per schema: the schema's own parts decide whether there is anything to check at all. */
import type { Cause, Schema } from './model.ts'

export type SchemaCheck = (value: unknown, path: string, causes: Cause[]) => void

const NOTHING: SchemaCheck = () => undefined

/** `compile` runs once per schema; undefined when the schema has nothing of the sort anywhere. */
export function oncePerSchema(
  compile: (schema: Schema) => SchemaCheck | undefined,
): (schema: Schema) => SchemaCheck | undefined {
  const checks = new WeakMap<Schema, SchemaCheck | null>()
  return (schema) => {
    const known = checks.get(schema)
    if (known !== undefined) return known ?? undefined
    // A schema that contains itself finds this while it is being looked at, and adds nothing by that.
    checks.set(schema, NOTHING)
    const check = compile(schema)
    checks.set(schema, check ?? null)
    return check
  }
}
