/**
 * The requirements of a structural schema: every value has a type, value validations contain no types. Paths begin at
 * the schema; the caller prepends its own.
 */
import { Matcher, findMatcher } from '@seamark/regexp'
import { jsonEqual } from '../../codec/json-equal.ts'
import { forbidden, invalid, required } from '../field-error.ts'
import type { Cause, Schema } from '../model.ts'

type Level = 'root' | 'item' | 'field'

export function checkStructural(schema: Schema): Cause[] {
  const causes: Cause[] = []
  checkNode(schema, 'root', '', causes)
  return causes.toSorted((a, b) => (`${a.field}: ${a.message}` < `${b.field}: ${b.message}` ? -1 : 1))
}

function child(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

const EMPTY_TYPE: Record<Level, string> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
}

function checkNode(schema: Schema, level: Level, path: string, causes: Cause[]): void {
  const { type, items, properties = {}, additionalProperties } = schema
  if (type === 'array' && items === undefined) causes.push(required(child(path, 'items'), 'must be specified'))
  if (items !== undefined) checkNode(items, 'item', child(path, 'items'), causes)
  for (const [name, property] of Object.entries(properties)) {
    checkNode(property, 'field', `${child(path, 'properties')}[${name}]`, causes)
  }
  if (additionalProperties !== undefined && additionalProperties !== false) {
    const location = child(path, 'additionalProperties')
    if (level === 'root') causes.push(forbidden(location, 'must not be used at the root'))
    if (typeof additionalProperties === 'object') checkNode(additionalProperties, 'field', location, causes)
  }
  checkExtensions(schema, path, causes)
  checkTypes(schema, level, path, causes)
  checkMeta(schema, level, path, causes)
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true
  checkLogic(schema, path, causes, isIntOrString)
  checkPattern(schema, path, causes)
}

function checkExtensions(schema: Schema, path: string, causes: Cause[]): void {
  if (schema['x-kubernetes-int-or-string'] !== true) return
  for (const name of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const) {
    if (schema[name] === true)
      causes.push(invalid(child(path, name), true, 'must be false if x-kubernetes-int-or-string is true'))
  }
}

function checkTypes(schema: Schema, level: Level, path: string, causes: Cause[]): void {
  const { type } = schema
  const location = child(path, 'type')
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true
  const keepsUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true
  if (isEmbedded && type !== 'object') {
    const detail = 'must be object if x-kubernetes-embedded-resource is true'
    causes.push(type === undefined ? required(location, detail) : invalid(location, type, detail))
  } else if (type === undefined && schema['x-kubernetes-int-or-string'] !== true && !keepsUnknown) {
    causes.push(required(location, EMPTY_TYPE[level]))
  }
  if (isEmbedded && schema.additionalProperties !== undefined) {
    causes.push(
      forbidden(child(path, 'additionalProperties'), 'must not be used if x-kubernetes-embedded-resource is set'),
    )
  }
  if (level === 'root' && type !== undefined && type !== 'object')
    causes.push(invalid(location, type, 'must be object at the root'))
  if (isEmbedded && !keepsUnknown && Object.keys(schema.properties ?? {}).length === 0) {
    causes.push(
      required(
        child(path, 'properties'),
        'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
      ),
    )
  }
}

function checkMeta(schema: Schema, level: Level, path: string, causes: Cause[]): void {
  const { properties = {} } = schema
  const isObject = level === 'root' || schema['x-kubernetes-embedded-resource'] === true
  if (!isObject) return
  const location = (name: string): string => `${child(path, 'properties')}[${name}]`
  for (const name of ['kind', 'apiVersion']) {
    const type = Object.hasOwn(properties, name) ? properties[name]!.type : 'string'
    if (type !== 'string') causes.push(invalid(`${location(name)}.type`, type ?? '', 'must be string'))
  }
  const metadata = Object.hasOwn(properties, 'metadata') ? properties['metadata'] : undefined
  if (metadata === undefined) return
  if (metadata.type !== 'object')
    causes.push(invalid(`${location('metadata')}.type`, metadata.type ?? '', 'must be object'))
  if (level !== 'root') return
  const { type: _t, description: _d, default: _f, properties: inner = {}, ...rest } = metadata
  const isPlain = Object.keys(inner).every((name) => name === 'name' || name === 'generateName')
  if (!isPlain || Object.keys(rest).length > 0) {
    causes.push(
      forbidden(
        location('metadata'),
        'must not specify anything other than name and generateName, but metadata is implicitly specified',
      ),
    )
  }
}

function checkPattern({ pattern }: Schema, path: string, causes: Cause[]): void {
  if (pattern === undefined || pattern === '') return
  const matcher = findMatcher(pattern)
  if (matcher instanceof Matcher) return
  causes.push(
    invalid(child(path, 'pattern'), pattern, `must be a valid regular expression, but isn't: ${matcher.message}`),
  )
}

const INT_OR_STRING: Schema[] = [{ type: 'integer' }, { type: 'string' }]

function checkLogic(schema: Schema, path: string, causes: Cause[], isIntOrString: boolean): void {
  const { anyOf = [], allOf = [], oneOf = [], not } = schema
  const nested = (list: readonly Schema[], name: string): void => {
    for (const [i, sub] of list.entries())
      checkNested(sub, `${child(path, name)}[${i}]`, causes, isIntOrString && name === 'allOf' && i === 0)
  }
  if (!(isIntOrString && jsonEqual(anyOf, INT_OR_STRING))) nested(anyOf, 'anyOf')
  nested(allOf, 'allOf')
  nested(oneOf, 'oneOf')
  if (not !== undefined) checkNested(not, child(path, 'not'), causes, false)
}

/** Keywords that are forbidden in a nested value validation, and the messages. */
const FORBIDDEN: readonly [keyof Schema, string][] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
]

function checkNested(schema: Schema, path: string, causes: Cause[], isFirstAllOf: boolean): void {
  checkLogic(schema, path, causes, isFirstAllOf)
  checkPattern(schema, path, causes)
  if (schema.items !== undefined) checkNested(schema.items, child(path, 'items'), causes, false)
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    checkNested(property, `${child(path, 'properties')}[${name}]`, causes, false)
  }
  for (const [name, detail] of FORBIDDEN) {
    const value = schema[name]
    if (value !== undefined && value !== false && value !== '' && !(Array.isArray(value) && value.length === 0)) {
      causes.push(forbidden(child(path, name), detail))
    }
  }
  if (Object.hasOwn(schema.properties ?? {}, 'metadata')) {
    causes.push(forbidden(`${child(path, 'properties')}[metadata]`, 'must not be specified in a nested context'))
  }
}
