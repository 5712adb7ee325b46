/**
 * Conversion of JSON values to CEL values by schema: whole numbers of integer fields are ints, dates are timestamps,
 * and field names that are not identifiers are escaped. Rules cannot access fields that the schema does not declare.
 */
import type { Schema } from '../schema/model.ts'

const RESERVED: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['__', '__underscores__'],
  ['.', '__dot__'],
  ['-', '__dash__'],
  ['/', '__slash__'],
])

/** The name of a field in rules; undefined when rules cannot access it. */
export function escapeName(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`
  if (/^[A-Za-z_]\w*$/.test(name) && !name.includes('__')) return name
  if (!/^[A-Za-z_][\w./-]*$/.test(name)) return undefined
  return name.replace(/__|[./-]/g, (part) => ESCAPES.get(part)!)
}

/** The engine's duration value; undefined when the text is not a duration. */
export type DurationReader = (text: string) => unknown

/** Converted objects are cached for one validation: several rules read the same parts. */
export class ValueReader {
  readonly #converted = new Map<object, unknown>()
  readonly #readDuration: DurationReader

  constructor(readDuration: DurationReader) {
    this.#readDuration = readDuration
  }

  read(schema: Schema | undefined, value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return this.#scalar(schema, value)
    const known = this.#converted.get(value)
    if (known !== undefined) return known
    const result = Array.isArray(value)
      ? value.map((item) => this.read(schema?.items, item))
      : this.#fields(schema, value as Record<string, unknown>)
    this.#converted.set(value, result)
    return result
  }

  #scalar(schema: Schema | undefined, value: unknown): unknown {
    if (typeof value === 'number') return isInteger(schema, value) ? BigInt(value) : value
    if (typeof value !== 'string' || schema?.format === undefined || schema.type !== 'string') return value
    switch (schema.format) {
      case 'date-time':
      case 'datetime':
      case 'date': {
        const date = new Date(value)
        return Number.isNaN(date.getTime()) ? value : date
      }
      case 'duration':
        return this.#readDuration(value) ?? value
      case 'byte':
        return new Uint8Array(Buffer.from(value, 'base64'))
      default:
        return value
    }
  }

  #fields(schema: Schema | undefined, value: Record<string, unknown>): Record<string, unknown> {
    const result: Record<string, unknown> = Object.create(null) as Record<string, unknown>
    const properties = schema?.properties
    const extra = typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined
    for (const [key, item] of Object.entries(value)) {
      if (properties !== undefined && Object.hasOwn(properties, key)) {
        // To rules, a null field is absent.
        if (item === null) continue
        const name = escapeName(key)
        if (name !== undefined) result[name] = this.read(properties[key], item)
        // A field named like a keyword is accessible by both names.
        if (RESERVED.has(key)) result[key] = result[`__${key}__`]
      } else if (properties === undefined || extra !== undefined) {
        result[key] = this.read(extra, item)
      }
    }
    return result
  }
}

function isInteger(schema: Schema | undefined, value: number): boolean {
  if (schema?.type === 'number') return false
  return Number.isInteger(value)
}
