/**
 * Applies defaults in place: absent fields, and nulls where null is not allowed. Recurses only into existing values.
 */
import type { Schema } from './model.ts'
import { oncePerSchema } from './schema-check.ts'

type Fields = Record<string, unknown>
type Fill = (value: unknown) => void

const NOTHING: Fill = () => undefined

/** Undefined when the schema contains no default. */
export const defaultsOf = oncePerSchema(compile)

function compile(schema: Schema): Fill | undefined {
  const ofFields = compileFields(schema)
  const ofItems = schema.items === undefined ? undefined : compileItems(schema.items)
  if (ofFields === undefined && ofItems === undefined) return undefined
  return (value) => {
    if (typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) ofItems?.(value)
    else ofFields?.(value as Fields)
  }
}

function compileFields({ properties = {}, additionalProperties }: Schema): ((fields: Fields) => void) | undefined {
  const defaults: { name: string; value: unknown; replacesNull: boolean }[] = []
  const inner = new Map<string, Fill>()
  for (const [name, property] of Object.entries(properties)) {
    if (property.default !== undefined && property.default !== null) {
      defaults.push({ name, value: property.default, replacesNull: property.nullable !== true })
    }
    const fill = defaultsOf(property)
    if (fill !== undefined) inner.set(name, fill)
  }
  const extra = typeof additionalProperties === 'object' ? additionalProperties : undefined
  const ofExtra = extra && (defaultsOf(extra) ?? (extra.default === undefined ? undefined : NOTHING))
  if (defaults.length === 0 && inner.size === 0 && ofExtra === undefined) return undefined
  return (fields) => {
    for (const { name, value, replacesNull } of defaults) {
      if (!Object.hasOwn(fields, name) || (replacesNull && fields[name] === null)) fields[name] = copy(value)
    }
    for (const [name, fill] of inner) if (Object.hasOwn(fields, name)) fill(fields[name])
    if (extra === undefined || ofExtra === undefined) return
    for (const key of Object.keys(fields)) {
      if (Object.hasOwn(properties, key)) continue
      if (fields[key] === null && extra.nullable !== true && extra.default !== undefined)
        fields[key] = copy(extra.default)
      ofExtra(fields[key])
    }
  }
}

function compileItems(items: Schema): ((list: unknown[]) => void) | undefined {
  const fill = defaultsOf(items)
  if (fill === undefined && items.default === undefined) return undefined
  return (list) => {
    for (let i = 0; i < list.length; i++) {
      if (list[i] === null && items.nullable !== true && items.default !== undefined) list[i] = copy(items.default)
      fill?.(list[i])
    }
  }
}

function copy(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? structuredClone(value) : value
}
