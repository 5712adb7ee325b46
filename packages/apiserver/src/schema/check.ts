/**
 * The fast path of validation: closures that only return whether a value is valid. Nearly every write is valid, so
 * paths and messages are built (report.ts) only when one of these returns false.
 *
 * Invariant: `check(value)` is true only when `report` finds nothing (verified by a property test); where it is false,
 * the report decides: kube-apiserver accepts some invalid values, such as a list for a string with a format. A node is
 * compiled on first use: large schemas cost only what objects use, and recursive ones terminate.
 */
import { jsonEqual } from '../codec/json-equal.ts'
import { Matcher, findMatcher } from '@seamark/regexp'
import { findFormat } from './formats.ts'
import type { Schema } from './model.ts'

type Check = (value: unknown) => boolean

const checks = new WeakMap<Schema, Check>()

export function checkOf(schema: Schema): Check {
  let check = checks.get(schema)
  if (check === undefined) checks.set(schema, (check = compileCheck(schema)))
  return check
}

type Fields = Record<string, unknown>

function compileCheck(schema: Schema): Check {
  const ofObject = objectCheck(schema)
  const ofArray = arrayCheck(schema)
  const ofString = stringCheck(schema)
  const ofNumber = numberCheck(schema)
  const isNullAllowed =
    (schema.type === undefined && schema['x-kubernetes-int-or-string'] !== true) || schema.nullable === true
  const rest = logicCheck(schema)
  const allowsBoolean = typeAllows(schema, 'boolean')
  return (value) => {
    if (value === null) return isNullAllowed && enumAllows(schema, null)
    if (typeof value === 'string') {
      if (!ofString(value)) return false
    } else if (typeof value === 'object') {
      if (!(Array.isArray(value) ? ofArray(value) : ofObject(value as Fields))) return false
    } else if (typeof value === 'number') {
      if (!ofNumber(value)) return false
    } else if (!allowsBoolean || !enumAllows(schema, value)) {
      return false
    }
    return rest === undefined || rest(value)
  }
}

function typeAllows(schema: Schema, type: string): boolean {
  return schema['x-kubernetes-int-or-string'] === true
    ? type === 'integer' || type === 'string'
    : schema.type === undefined || schema.type === type
}

export function enumAllows({ enum: values }: Schema, value: unknown): boolean {
  return values === undefined || values.length === 0 || (value !== null && values.some((item) => isSame(item, value)))
}

/** kube-apiserver converts a number to the type of the listed value first: 2.5 equals 2, 120 equals 'x'. */
function isSame(listed: unknown, value: unknown): boolean {
  if (typeof value !== 'number') return jsonEqual(listed, value)
  if (typeof listed === 'string')
    return Number.isInteger(value) && value >= 0 && value <= 0x10ffff && String.fromCodePoint(value) === listed
  return typeof listed === 'number' && (Number.isInteger(listed) ? Math.trunc(value) === listed : value === listed)
}

function stringCheck(schema: Schema): (value: string) => boolean {
  if (!typeAllows(schema, 'string')) return () => false
  const { minLength = 0, maxLength = Infinity, pattern, format } = schema
  const matcher = pattern === undefined || pattern === '' ? undefined : findMatcher(pattern)
  if (matcher !== undefined && !(matcher instanceof Matcher)) return () => false
  const formatCheck = format === undefined ? undefined : findFormat(format)
  const allowed = schema.enum === undefined || schema.enum.length === 0 ? undefined : new Set(schema.enum)
  return (value) =>
    value.length <= maxLength * 2 &&
    (value.length <= maxLength || runeCount(value) <= maxLength) &&
    (minLength === 0 ||
      (value.length >= minLength && (value.length >= minLength * 2 || runeCount(value) >= minLength))) &&
    (matcher === undefined || matcher.test(value)) &&
    (formatCheck === undefined || formatCheck(value)) &&
    (allowed === undefined || allowed.has(value))
}

/** Length in code points, the unit of length limits. */
export function runeCount(text: string): number {
  let count = text.length
  for (let i = 0; i + 1 < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) count--
  }
  return count
}

function numberCheck(schema: Schema): (value: number) => boolean {
  const allowsFraction = typeAllows(schema, 'number')
  if (!allowsFraction && !typeAllows(schema, 'integer')) return () => false
  const limits = numberViolations(schema)
  return (value) =>
    (allowsFraction || Number.isInteger(value)) &&
    limits.every((violates) => !violates(value)) &&
    enumAllows(schema, value)
}

/** The limits of a numeric schema as predicates that are true for a violation. */
function numberViolations(schema: Schema): ((value: number) => boolean)[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, format } = schema
  const violations: ((value: number) => boolean)[] = []
  if (minimum !== undefined) violations.push(exclusiveMinimum === true ? (v) => v <= minimum : (v) => v < minimum)
  if (maximum !== undefined) violations.push(exclusiveMaximum === true ? (v) => v >= maximum : (v) => v > maximum)
  if (multipleOf !== undefined) violations.push((v) => !isMultiple(v, multipleOf))
  if (schema.type === 'integer') violations.push((v) => isOutOfRange(v, format))
  return violations
}

export function isMultiple(value: number, factor: number): boolean {
  if (factor <= 0) return false
  const ratio = factor < 1 ? (1 / factor) * value : value / factor
  return Math.abs(ratio - Math.round(ratio)) < 1e-9 * Math.max(1, Math.abs(ratio))
}

export function isOutOfRange(value: number, format: string | undefined): boolean {
  return format === 'int32' ? value > 2147483647 || value < -2147483648 : value >= 2 ** 63 || value < -(2 ** 63)
}

function arrayCheck(schema: Schema): (value: unknown[]) => boolean {
  if (!typeAllows(schema, 'array')) return () => false
  const { items, minItems = 0, maxItems = Infinity, uniqueItems } = schema
  let item: Check | undefined
  return (value) => {
    if (value.length < minItems || value.length > maxItems) return false
    if (items !== undefined) {
      item ??= checkOf(items)
      for (let i = 0; i < value.length; i++) if (!item(value[i])) return false
    }
    return (uniqueItems !== true || !hasDuplicates(value)) && enumAllows(schema, value)
  }
}

export function hasDuplicates(list: readonly unknown[]): boolean {
  return list.some((item, i) => list.findIndex((other) => jsonEqual(item, other)) < i)
}

function objectCheck(schema: Schema): (value: Fields) => boolean {
  if (!typeAllows(schema, 'object')) return () => false
  const { properties, additionalProperties, required = [], minProperties = 0, maxProperties = Infinity } = schema
  const known = new Map<string, Check>()
  const extra = typeof additionalProperties === 'object' ? additionalProperties : undefined
  return (value) => {
    let count = 0
    for (const key in value) {
      count++
      let check = known.get(key)
      if (check === undefined) {
        const property = properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined
        if (property !== undefined) known.set(key, (check = checkOf(property)))
        else if (additionalProperties === false) return false
        else if (extra !== undefined) check = checkOf(extra)
        else continue
      }
      if (!check(value[key])) return false
    }
    for (const key of required) if (!Object.hasOwn(value, key)) return false
    return count >= minProperties && count <= maxProperties && enumAllows(schema, value)
  }
}

function logicCheck({ allOf = [], anyOf = [], oneOf = [], not }: Schema): Check | undefined {
  const logic: Check[] = []
  if (allOf.length > 0) logic.push((value) => allOf.every((sub) => checkOf(sub)(value)))
  if (anyOf.length > 0) logic.push((value) => anyOf.some((sub) => checkOf(sub)(value)))
  if (oneOf.length > 0) logic.push((value) => oneOf.filter((sub) => checkOf(sub)(value)).length === 1)
  if (not !== undefined) logic.push((value) => !checkOf(not)(value))
  return logic.length === 0 ? undefined : (value) => logic.every((check) => check(value))
}
