/**
 * Defaults of built-in kinds, by type, as kube-apiserver sets them when it decodes an object. In place.
 *
 * Place in the flow: after normalisation, before admission and storage. Allocation (clusterIP, nodePort) is separate.
 */
import { isJsonObject } from '../codec/json-object.ts'
import type { JsonObject } from '../codec/json-object.ts'
import type { Schema } from '../schema/model.ts'
import { oncePerSchema } from '../schema/schema-check.ts'
import { TYPE_DEFAULTS } from './type-defaults.ts'

type Fill = (object: JsonObject) => void

/** Undefined when neither the type nor anything below it has defaults. */
const fillOf = oncePerSchema(compile)

export function applyBuiltinDefaults(schema: Schema, object: JsonObject): void {
  fillOf(schema)?.(object)
}

function compile(schema: Schema): Fill | undefined {
  const own = schema.typeName === undefined ? undefined : TYPE_DEFAULTS.get(schema.typeName)
  const simple: [name: string, value: unknown][] = []
  const inner: [name: string, fill: (value: unknown) => void][] = []
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    // A default of '' is equivalent to absence: only the keys of lists use it.
    if (property.default !== undefined && property.default !== '') simple.push([name, property.default])
    const fill = childFill(property)
    if (fill !== undefined) inner.push([name, fill])
  }
  if (own === undefined && simple.length === 0 && inner.length === 0) return undefined
  return (object) => {
    for (const [name, value] of simple) if (isAbsent(object[name])) object[name] = value
    own?.(object)
    for (const [name, fill] of inner) if (object[name] !== undefined) fill(object[name])
  }
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === '' || value === null
}

function childFill(schema: Schema): ((value: unknown) => void) | undefined {
  if (schema.type === 'array' && schema.items !== undefined) {
    const fill = childFill(schema.items)
    return fill && ((value) => Array.isArray(value) && value.forEach(fill))
  }
  if (schema.type !== 'object') return undefined
  if (typeof schema.additionalProperties === 'object') {
    const fill = childFill(schema.additionalProperties)
    return fill && ((value) => isJsonObject(value) && Object.values(value).forEach(fill))
  }
  const fill = fillOf(schema)
  return fill && ((value) => isJsonObject(value) && fill(value))
}
