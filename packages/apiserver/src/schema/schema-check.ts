/** Functions that are compiled once per schema, such as a check of values. */
import type { Cause, Schema } from './model.ts'

export type SchemaCheck = (value: unknown, path: string, causes: Cause[]) => void

/** `compile` runs once per schema; undefined when there is nothing to do for values of the schema. */
export function oncePerSchema<Args extends unknown[]>(
  compile: (schema: Schema) => ((...args: Args) => void) | undefined,
): (schema: Schema) => ((...args: Args) => void) | undefined {
  const compiled = new WeakMap<Schema, ((...args: Args) => void) | null>()
  return (schema) => {
    const known = compiled.get(schema)
    if (known !== undefined) return known ?? undefined
    // Ends the recursion for a schema that contains itself.
    compiled.set(schema, () => undefined)
    const found = compile(schema)
    compiled.set(schema, found ?? null)
    return found
  }
}
