/**
 * The fields that encoders always write for a built-in type, recursively; `{}` for custom resources, whose fields are
 * optional.
 */
import type { Schema } from './model.ts'

const cache = new WeakMap<Schema, unknown>()

export function zeroValue(schema: Schema): unknown {
  if (schema.zero === null || schema.type !== 'object' || schema.properties === undefined) return schema.zero
  let value = cache.get(schema) as Record<string, unknown> | undefined
  if (value === undefined) {
    value = {}
    for (const [name, property] of Object.entries(schema.properties)) {
      if (property.zero !== undefined) value[name] = zeroValue(property)
    }
    cache.set(schema, value)
  }
  return value
}
