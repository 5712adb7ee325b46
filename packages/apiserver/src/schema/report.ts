/**
 * The slow path of validation: every violation with its path and kube-apiserver's message, in its order.
 *
 * Place in the flow: runs only when the fast check failed. Ratcheting: violations that an update leaves unchanged are
 * not reported.
 */
import { jsonEqual } from '../codec/json-equal.ts'
import { Matcher, findMatcher } from '@seamark/regexp'
import { enumAllows, hasDuplicates, isMultiple, isOutOfRange, runeCount } from './check.ts'
import { invalid, notSupported, required, tooLong, tooMany, typeInvalid } from './field-error.ts'
import { findFormat } from './formats.ts'
import type { Cause, Schema } from './model.ts'
import { findOldItem } from './correlation.ts'

/** Errors of one schema, and how many of its checks ran: the best of several alternatives is the one with the most. */
class Result {
  readonly causes: Cause[] = []
  matches = 0

  /** Adds one batch; from the first repeated error on, the rest of the batch is dropped. */
  add(causes: readonly Cause[]): void {
    let isRepeated = false
    for (const cause of causes) {
      isRepeated ||= this.causes.some((known) => known.message === cause.message && known.field === cause.field)
      if (!isRepeated) this.causes.push(cause)
    }
  }

  merge(other: Result): void {
    this.matches += other.matches
    this.add(other.causes)
  }
}

/** Errors that belong to no single field are reported at the object itself. */
export const NO_FIELD = '<nil>'

export function reportViolations(schema: Schema, value: unknown, old: unknown): Cause[] {
  return report(schema, value, '', old).causes
}

type Fields = Record<string, unknown>

function report(schema: Schema, value: unknown, path: string, old: unknown): Result {
  const result = new Result()
  if (old !== undefined && jsonEqual(value, old)) return result
  const typeError = checkType(schema, value, path)
  if (typeError !== undefined) result.add([typeError])
  else result.matches++
  if (value === null) {
    if (!enumAllows(schema, null)) result.add([notSupported(path, null, schema.enum!)])
    return result
  }
  result.merge(reportLogic(schema, value, path, old))
  if (typeof value === 'string') reportString(schema, value, path, result)
  else if (typeof value === 'number') reportNumber(schema, value, path, result)
  else if (Array.isArray(value)) reportArray(schema, value, path, old, result)
  if (!enumAllows(schema, value)) result.add([notSupported(path, value, schema.enum!)])
  if (typeof value === 'object' && !Array.isArray(value)) reportObject(schema, value as Fields, path, old, result)
  result.matches += 3
  return result
}

/** JSON type and numeric format of a value, as used in messages. */
function typeOf(value: unknown): [type: string, format: string] {
  if (value === null) return ['null', '']
  if (Array.isArray(value)) return ['array', '']
  if (typeof value === 'number') return Number.isInteger(value) ? ['integer', 'int64'] : ['number', 'float64']
  return [typeof value, '']
}

function checkType(schema: Schema, value: unknown, path: string): Cause | undefined {
  const types: string[] =
    schema['x-kubernetes-int-or-string'] === true
      ? ['integer', 'string']
      : schema.type === undefined
        ? []
        : [schema.type]
  const [type, valueFormat] = typeOf(value)
  const format = usedFormat(schema)
  if (types.length === 0 && format === '') return undefined
  const typeError = (expected: string, actual: string): Cause =>
    typeInvalid(path, actual, `${path} in body must be of type ${expected}: ${JSON.stringify(actual)}`)
  if (type === 'null')
    return types.length > 0 && schema.nullable !== true ? typeError(types.join(','), 'null') : undefined
  const isAllowed = types.includes(type) || (type === 'integer' && types.includes('number'))
  const isText = type === 'string' || type === 'array'
  if (!isText && format !== '' && !isAllowed && valueFormat !== format) return typeError(format, valueFormat)
  if (isText && format !== '' && !types.includes('number') && !types.includes('integer')) return undefined
  return isAllowed ? undefined : typeError(types.join(','), type)
}

/** Formats that do not apply to the type are ignored. */
function usedFormat({ type, format = '' }: Schema): string {
  switch (type) {
    case 'integer':
      return format === 'int32' || format === 'int64' ? format : ''
    case 'number':
      return format === 'float' || format === 'double' ? format : ''
    case 'object':
    case 'array':
    case 'boolean':
      return ''
    case 'string':
    case undefined:
      break
  }
  return findFormat(format) === undefined ? '' : format
}

function reportString(schema: Schema, value: string, path: string, result: Result): void {
  const { minLength, maxLength, pattern } = schema
  const length = runeCount(value)
  if (maxLength !== undefined && length > maxLength) {
    result.add([tooLong(path, maxLength)])
  } else if (minLength !== undefined && length < minLength) {
    result.add([invalid(path, value, `${path} in body should be at least ${minLength} chars long`)])
  } else if (pattern !== undefined && pattern !== '') {
    const matcher = findMatcher(pattern)
    const text = matcher instanceof Matcher ? pattern : `${pattern}, but pattern is invalid: ${matcher.message}`
    if (!(matcher instanceof Matcher && matcher.test(value))) {
      result.add([invalid(path, value, `${path} in body should match '${text}'`)])
    }
  }
  const format = usedFormat(schema)
  if (format !== '' && findFormat(format)?.(value) === false) {
    result.add([typeInvalid(path, value, `${path} in body must be of type ${format}: ${JSON.stringify(value)}`)])
  }
}

function reportNumber(schema: Schema, value: number, path: string, result: Result): void {
  const { type, format, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  const add = (text: string): void => result.add([invalid(path, value, `${path} in body should be ${text}`)])
  if (type === 'integer' && (isOutOfRange(value, format) || !Number.isInteger(value))) {
    const kind = format === undefined || format === '' ? `${type} (default format)` : `${type} with format ${format}`
    result.add([invalid(NO_FIELD, '', `Checked value must be of type ${kind} in ${path}`)])
  }
  if (multipleOf !== undefined && !isMultiple(value, multipleOf)) add(`a multiple of ${multipleOf}`)
  if (minimum !== undefined && (exclusiveMinimum === true ? value <= minimum : value < minimum)) {
    add(exclusiveMinimum === true ? `greater than ${minimum}` : `greater than or equal to ${minimum}`)
  }
  if (maximum !== undefined && (exclusiveMaximum === true ? value >= maximum : value > maximum)) {
    add(exclusiveMaximum === true ? `less than ${maximum}` : `less than or equal to ${maximum}`)
  }
  result.matches++
}

function reportArray(schema: Schema, value: unknown[], path: string, old: unknown, result: Result): void {
  const { items, minItems, maxItems, uniqueItems } = schema
  if (items !== undefined) {
    for (const [i, item] of value.entries()) {
      result.merge(report(items, item, `${path}[${i}]`, findOldItem(schema, item, old)))
    }
  }
  const size = value.length
  if (minItems !== undefined && size < minItems) {
    result.add([invalid(path, size, `${path} in body should have at least ${minItems} items`)])
  }
  if (maxItems !== undefined && size > maxItems) result.add([tooMany(path, size, maxItems)])
  if (uniqueItems === true && hasDuplicates(value))
    result.add([invalid(path, '', `${path} in body shouldn't contain duplicates`)])
  result.matches++
}

function reportObject(schema: Schema, value: Fields, path: string, old: unknown, result: Result): void {
  const { properties = {}, additionalProperties, minProperties, maxProperties } = schema
  const keys = Object.keys(value)
  if (minProperties !== undefined && keys.length < minProperties) {
    result.add([invalid(path, keys.length, `${path} in body should have at least ${minProperties} properties`)])
  }
  if (maxProperties !== undefined && keys.length > maxProperties)
    result.add([tooMany(path, keys.length, maxProperties)])
  const before = typeof old === 'object' && old !== null && !Array.isArray(old) ? (old as Fields) : {}
  const oldOf = (key: string): unknown => (Object.hasOwn(before, key) ? before[key] : undefined)
  for (const key of keys) {
    if (Object.hasOwn(properties, key)) continue
    if (additionalProperties === false) {
      result.add([invalid(path, key, `${path}.${key} in body is a forbidden property`)])
    } else if (typeof additionalProperties === 'object') {
      result.merge(report(additionalProperties, value[key], `${path}.${key}`, oldOf(key)))
    }
  }
  for (const key of keys) {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (property !== undefined)
      result.merge(report(property, value[key], path === '' ? key : `${path}.${key}`, oldOf(key)))
  }
  for (const key of schema.required ?? []) {
    if (!Object.hasOwn(value, key)) result.add([required(path === '' ? key : `${path}.${key}`)])
  }
}

function reportLogic(schema: Schema, value: unknown, path: string, old: unknown): Result {
  const result = new Result()
  const { anyOf = [], oneOf = [], allOf = [], not } = schema
  const general = (text: string): void => result.add([invalid(NO_FIELD, '', `${JSON.stringify(path)} ${text}`)])
  if (anyOf.length > 0) {
    const results = anyOf.map((sub) => report(sub, value, path, old))
    const passed = results.find(({ causes }) => causes.length === 0)
    if (passed === undefined) general('must validate at least one schema (anyOf)')
    result.merge(passed ?? bestOf(results))
  }
  if (oneOf.length > 0) {
    const results = oneOf.map((sub) => report(sub, value, path, old))
    const passed = results.filter(({ causes }) => causes.length === 0)
    if (passed.length === 1) {
      result.merge(passed[0]!)
    } else {
      const found = passed.length === 0 ? 'Found none valid' : `Found ${passed.length} valid alternatives`
      general(`must validate one and only one schema (oneOf). ${found}`)
      if (passed.length === 0) result.merge(bestOf(results))
    }
  }
  if (allOf.length > 0) {
    const results = allOf.map((sub) => report(sub, value, path, old))
    for (const one of results) result.merge(one)
    const failed = results.filter(({ causes }) => causes.length > 0).length
    if (failed > 0) general(`must validate all the schemas (allOf)${failed === allOf.length ? '. None validated' : ''}`)
  }
  if (not !== undefined && report(not, value, path, undefined).causes.length === 0)
    general('must not validate the schema (not)')
  result.matches++
  return result
}

function bestOf(results: readonly Result[]): Result {
  return results.reduce((best, result) => (result.matches > best.matches ? result : best))
}
