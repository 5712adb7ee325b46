/**
 * Validates the rules of a schema when a CustomResourceDefinition is written: complete, parsable, and referencing
 * declared fields. Paths begin at the schema. Costs are not estimated (docs/apiserver.md).
 */
import type { Engine } from '../../cel/engine.ts'
import { forbidden, goJson, invalid, notSupported, required } from '../field-error.ts'
import type { Cause, Schema, ValidationRule } from '../model.ts'
import { withObjectFields } from '../cel.ts'

const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

export function checkRules(schema: Schema, engine: Engine): Cause[] {
  const causes: Cause[] = []
  checkNode(withObjectFields(schema), schema, '', engine, causes)
  return causes
}

/** `seen` is the schema that rules access; `schema` is the schema as written. */
function checkNode(seen: Schema, schema: Schema, path: string, engine: Engine, causes: Cause[]): void {
  for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    const at = `${path === '' ? '' : `${path}.`}x-kubernetes-validations[${index}]`
    checkRule(rule, seen, at, engine, causes)
  }
  const inside = (name: string): string => (path === '' ? name : `${path}.${name}`)
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    checkNode(property, property, `${inside('properties')}[${name}]`, engine, causes)
  if (schema.items !== undefined) checkNode(schema.items, schema.items, inside('items'), engine, causes)
  const { additionalProperties: extra } = schema
  if (typeof extra === 'object') checkNode(extra, extra, inside('additionalProperties'), engine, causes)
}

function checkRule(rule: ValidationRule, seen: Schema, at: string, engine: Engine, causes: Cause[]): void {
  const { message = '', messageExpression = '', reason, fieldPath = '' } = rule
  if (rule.rule.trim() === '') {
    causes.push(required(`${at}.rule`, 'rule is not specified'))
    return
  }
  const refuse = (key: string, why: string): unknown =>
    causes.push({
      reason: 'FieldValueInvalid',
      message: `Invalid value: ${internalText(rule)}: ${why}`,
      field: `${at}.${key}`,
    })
  if (message !== '' && message.trim() === '')
    causes.push(invalid(`${at}.message`, message, 'must be non-empty if specified'))
  if (message.trim().includes('\n')) causes.push(invalid(`${at}.message`, message, 'must not contain line breaks'))
  if (rule.rule.trim().includes('\n') && message === '')
    causes.push(required(`${at}.message`, 'message must be specified if rule contains line breaks'))
  if (reason !== undefined && !REASONS.includes(reason)) causes.push(notSupported(`${at}.reason`, reason, REASONS))
  if (fieldPath !== '' && !isField(seen, fieldPath))
    causes.push(invalid(`${at}.fieldPath`, fieldPath, 'must be a valid path'))
  const problem = engine.explainRule(rule.rule, seen, 'boolean')
  if (problem !== undefined) refuse('rule', problem)
  const text = messageExpression === '' ? undefined : engine.explainRule(messageExpression, seen, 'string')
  if (text !== undefined) refuse('messageExpression', text)
}

/** The rule in the format of kube-apiserver's internal type, with Go's escapes. */
function internalText(rule: ValidationRule): string {
  const fields: readonly (readonly [string, unknown])[] = [
    ['Rule', rule.rule],
    ['Message', rule.message ?? ''],
    ['MessageExpression', rule.messageExpression ?? ''],
    ['Reason', rule.reason ?? null],
    ['FieldPath', rule.fieldPath ?? ''],
    ['OptionalOldSelf', rule.optionalOldSelf ?? null],
  ]
  return `{${fields.map(([name, value]) => `"${name}":${goJson(value)}`).join(',')}}`
}

/** `.a.b['c']` below the schema. */
function isField(schema: Schema, path: string): boolean {
  let [current, rest]: [Schema | undefined, string] = [schema, path]
  while (rest !== '') {
    const match = /^(?:\.([A-Za-z_]\w*)|\['([^']+)'\])/.exec(rest)
    if (match === null || current === undefined) return false
    const name = match[1] ?? match[2] ?? ''
    rest = rest.slice(match[0].length)
    const extra: Schema['additionalProperties'] = current.additionalProperties
    current = Object.hasOwn(current.properties ?? {}, name)
      ? current.properties?.[name]
      : typeof extra === 'object'
        ? extra
        : undefined
    if (current === undefined) return false
  }
  return true
}

/** Formats that kube-apiserver does not support are kept and reported as warnings. */
const FORMATS: ReadonlySet<string> = new Set(
  'bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13 creditcard ssn hexcolor rgbcolor byte password date duration datetime date-time int32 int64 float double int-or-string k8s-short-name k8s-long-name'.split(
    ' ',
  ),
)

export function unknownFormats(schema: Schema): string[] {
  const { format, properties = {}, items, additionalProperties: extra } = schema
  return [
    ...(format === undefined || format === '' || FORMATS.has(format) ? [] : [format]),
    ...Object.values(properties).flatMap(unknownFormats),
    ...(items === undefined ? [] : unknownFormats(items)),
    ...(typeof extra === 'object' ? unknownFormats(extra) : []),
  ]
}

/** Keywords that are forbidden even in a structural schema. */
export function checkKeywords(schema: Schema & { $ref?: unknown; uniqueItems?: unknown }, path = ''): Cause[] {
  const inside = (name: string): string => (path === '' ? name : `${path}.${name}`)
  const { properties, items, additionalProperties: extra } = schema
  const causes: Cause[] = []
  if (schema.uniqueItems === true) {
    const why = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic'
    causes.push(forbidden(inside('uniqueItems'), why))
  }
  if (extra !== undefined && Object.keys(properties ?? {}).length > 0)
    causes.push(forbidden(inside('additionalProperties'), 'additionalProperties and properties are mutual exclusive'))
  if (typeof schema.$ref === 'string') causes.push(forbidden(inside('$ref'), '$ref is not supported'))
  if (schema['x-kubernetes-preserve-unknown-fields'] === false)
    causes.push(invalid(inside('x-kubernetes-preserve-unknown-fields'), false, 'must be true or undefined'))
  if (schema['x-kubernetes-list-type'] === 'map' && (schema['x-kubernetes-list-map-keys'] ?? []).length === 0) {
    const why = 'must not be empty if x-kubernetes-list-type is map'
    causes.push(required(inside('x-kubernetes-list-map-keys'), why))
  }
  for (const [name, property] of Object.entries(properties ?? {}))
    causes.push(...checkKeywords(property, `${inside('properties')}[${name}]`))
  if (items !== undefined) causes.push(...checkKeywords(items, inside('items')))
  if (typeof extra === 'object') causes.push(...checkKeywords(extra, inside('additionalProperties')))
  return causes
}
