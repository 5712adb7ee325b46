/** A check that is compiled once per schema; undefined when the schema contains nothing to check. */
import type { Cause, Schema } from './model.ts'

export type SchemaCheck = (value: unknown, path: string, causes: Cause[]) => void

const NOTHING: SchemaCheck = () => undefined

/** `compile` runs once per schema; undefined when the schema contains nothing to check. */
export function oncePerSchema(
  compile: (schema: Schema) => SchemaCheck | undefined,
): (schema: Schema) => SchemaCheck | undefined {
  const checks = new WeakMap<Schema, SchemaCheck | null>()
  return (schema) => {
    const known = checks.get(schema)
    if (known !== undefined) return known ?? undefined
    // Ends the recursion for a schema that contains itself.
    checks.set(schema, NOTHING)
    const check = compile(schema)
    checks.set(schema, check ?? null)
    return check
  }
}
