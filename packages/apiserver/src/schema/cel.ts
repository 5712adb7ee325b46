/**
 * `x-kubernetes-validations`: CEL rules of a schema, compiled once, run on every write after structural validation.
 *
 * Guarantees: evaluation is bounded (cel/budget.ts). A rule that the engine cannot compile is skipped and reported in
 * `warnings`, never silently. Transition rules (`oldSelf`) run only when there is a corresponding old value; a
 * violation that an update leaves unchanged is not reported.
 */
import { endRule, isExhausted, startObject, startRule } from '../cel/budget.ts'
import type { Engine, Expression } from '../cel/engine.ts'
import { ValueReader } from '../cel/value.ts'
import { jsonEqual } from '../codec/json-equal.ts'
import { findOldField, findOldItem } from './correlation.ts'
import { duplicate, forbidden, goJson, goQuote, invalid, required } from './field-error.ts'
import type { Cause, Schema, ValidationRule } from './model.ts'
import { OBJECT_META } from './object-meta.ts'

interface CompiledRule {
  rule: ValidationRule
  expression: Expression
  message: Expression | undefined
}

interface Run {
  reader: ValueReader
  engine: Engine
  causes: Cause[]
  /** False once the budget is exhausted. */
  canContinue: boolean
}

type Visit = (value: unknown, old: unknown, path: string, run: Run) => void

export interface Rules {
  check(value: unknown, old: unknown): Cause[]
  warnings: string[]
}

export function hasRules(schema: Schema, seen: Set<Schema> = new Set()): boolean {
  if (seen.has(schema)) return false
  seen.add(schema)
  if ((schema['x-kubernetes-validations']?.length ?? 0) > 0) return true
  const children = [...Object.values(schema.properties ?? {}), ...(schema.allOf ?? [])]
  if (schema.items !== undefined) children.push(schema.items)
  if (typeof schema.additionalProperties === 'object') children.push(schema.additionalProperties)
  return children.some((child) => hasRules(child, seen))
}

export function compileRules(schema: Schema, engine: Engine): Rules {
  const warnings: string[] = []
  const visit = compileNode(withObjectFields(schema), '', engine, warnings)
  return {
    warnings,
    check: (value, old) => {
      const run: Run = {
        reader: new ValueReader((text) => engine.readDuration(text)),
        engine,
        causes: [],
        canContinue: true,
      }
      startObject()
      visit?.(value, old, '', run)
      return run.causes
    },
  }
}

/** The schema of a whole object as its rules access it. */
export function withObjectFields(schema: Schema): Schema {
  const properties = {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    ...schema.properties,
    metadata: META,
  } as const
  return { ...schema, properties }
}

/** The part of metadata that rules can access. */
const META: Schema = {
  type: 'object',
  properties: { name: OBJECT_META.properties!['name']!, generateName: OBJECT_META.properties!['generateName']! },
}

function compileNode(schema: Schema, location: string, engine: Engine, warnings: string[]): Visit | undefined {
  const parts: Visit[] = []
  // Empty rules are rejected by the validation of rules.
  const rules = (schema['x-kubernetes-validations'] ?? []).flatMap((rule) =>
    rule.rule.trim() === '' ? [] : compileRule(rule, location, engine, warnings),
  )
  if (rules.length > 0) parts.push((value, old, path, run) => runRules(schema, rules, value, old, path, run))
  for (const sub of schema.allOf ?? []) {
    const visit = compileNode(
      { ...schema, ...sub, allOf: sub.allOf ?? [], 'x-kubernetes-validations': sub['x-kubernetes-validations'] ?? [] },
      location,
      engine,
      warnings,
    )
    if (visit !== undefined && hasRules(sub)) parts.push(visit)
  }
  const ofItems =
    schema.items && hasRules(schema.items) ? compileNode(schema.items, `${location}[*]`, engine, warnings) : undefined
  if (ofItems !== undefined) {
    parts.push((value, old, path, run) => {
      if (!Array.isArray(value)) return
      for (const [i, item] of value.entries())
        if (run.canContinue) ofItems(item, findOldItem(schema, item, old), `${path}[${i}]`, run)
    })
  }
  const ofFields = compileFields(schema, location, engine, warnings)
  if (ofFields !== undefined) parts.push(ofFields)
  if (parts.length === 0) return undefined
  return (value, old, path, run) => {
    if (value !== null && value !== undefined)
      for (const part of parts) if (run.canContinue) part(value, old, path, run)
  }
}

function compileFields(schema: Schema, location: string, engine: Engine, warnings: string[]): Visit | undefined {
  const known = new Map<string, Visit>()
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const visit = hasRules(property)
      ? compileNode(property, location === '' ? name : `${location}.${name}`, engine, warnings)
      : undefined
    if (visit !== undefined) known.set(name, visit)
  }
  const { additionalProperties } = schema
  const extra =
    typeof additionalProperties === 'object' && hasRules(additionalProperties)
      ? compileNode(additionalProperties, `${location}[*]`, engine, warnings)
      : undefined
  if (known.size === 0 && extra === undefined) return undefined
  return (value, old, path, run) => {
    if (typeof value !== 'object' || Array.isArray(value)) return
    for (const [key, item] of Object.entries(value as object)) {
      const visit = known.get(key)
      if (visit !== undefined) visit(item, findOldField(key, old), path === '' ? key : `${path}.${key}`, run)
      else extra?.(item, findOldField(key, old), `${path}[${key}]`, run)
    }
  }
}

function compileRule(rule: ValidationRule, location: string, engine: Engine, warnings: string[]): CompiledRule[] {
  const compile = (source: string, what: string): Expression | undefined => {
    try {
      return engine.compile(source)
    } catch (error) {
      const [reason] = (error instanceof Error ? error.message : String(error)).split('\n')
      warnings.push(
        `${location === '' ? '<root>' : location}: ${what} ${goQuote(source)} cannot be evaluated and is not enforced: ${reason}`,
      )
      return undefined
    }
  }
  const expression = compile(rule.rule, 'rule')
  if (expression === undefined) return []
  const source = rule.messageExpression
  const message = source === undefined || source === '' ? undefined : compile(source, 'messageExpression')
  return [{ rule, expression, message }]
}

function runRules(
  schema: Schema,
  rules: readonly CompiledRule[],
  value: unknown,
  old: unknown,
  path: string,
  run: Run,
): void {
  const self = run.reader.read(schema, value)
  const oldSelf = old === undefined || old === null ? undefined : run.reader.read(schema, old)
  let isUnchanged: boolean | undefined
  for (const compiled of rules) {
    const { rule, expression } = compiled
    if (expression.usesOldSelf && oldSelf === undefined && rule.optionalOldSelf !== true) continue
    const variables =
      rule.optionalOldSelf === true ? { self, oldSelf: run.engine.optionalOf(oldSelf) } : { self, oldSelf }
    const cause = runRule(schema, compiled, variables, value, path, run)
    if (cause === undefined) continue
    // An unchanged value is only checked by rules that read the old value.
    isUnchanged ??= old !== undefined && jsonEqual(value, old)
    if (expression.usesOldSelf || !isUnchanged) run.causes.push(cause)
    if (!run.canContinue) return
  }
}

type Variables = { self: unknown; oldSelf?: unknown }

function runRule(
  schema: Schema,
  { rule, expression, message }: CompiledRule,
  variables: Variables,
  value: unknown,
  path: string,
  run: Run,
): Cause | undefined {
  const field = path === '' ? '<nil>' : path
  startRule()
  let result: unknown
  let failure: string | undefined
  try {
    result = expression.evaluate(variables)
  } catch (error) {
    failure = describeFailure(error, rule)
  }
  const isOverBudget = isExhausted()
  endRule()
  if (isOverBudget) {
    run.canContinue = false
    return invalid(
      field,
      schema.type ?? '',
      `'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${ruleText(rule)}`,
    )
  }
  if (failure !== undefined) return invalid(field, schema.type ?? '', failure)
  if (result === true) return undefined
  const detail = evaluateMessage(message, variables) ?? rule.message?.trim() ?? `failed rule: ${ruleText(rule)}`
  return causeOf(schema, rule, value, `${path}${rule.fieldPath ?? ''}`.replace(/^\./, '') || '<nil>', detail)
}

function evaluateMessage(message: Expression | undefined, variables: Variables): string | undefined {
  if (message === undefined) return undefined
  startRule()
  try {
    const text = message.evaluate(variables)
    const trimmed = typeof text === 'string' ? text.trim() : ''
    return trimmed === '' || trimmed.includes('\n') || trimmed.length > 5120 || isExhausted() ? undefined : trimmed
  } catch {
    return undefined
  } finally {
    endRule()
  }
}

function causeOf(schema: Schema, rule: ValidationRule, value: unknown, field: string, detail: string): Cause {
  const isCompound = schema.type === 'object' || schema.type === 'array'
  switch (rule.reason) {
    case 'FieldValueForbidden':
      return forbidden(field, detail)
    case 'FieldValueRequired':
      return required(field, detail)
    case 'FieldValueDuplicate':
      return isCompound ? { reason: 'FieldValueDuplicate', message: 'Duplicate value', field } : duplicate(field, value)
    case 'FieldValueInvalid':
    case undefined:
      break
  }
  return isCompound
    ? { reason: 'FieldValueInvalid', message: `Invalid value: ${detail}`, field }
    : invalid(field, value, detail)
}

function ruleText(rule: ValidationRule): string {
  return (rule.message !== undefined && rule.message !== '' ? rule.message : rule.rule).trim()
}

function describeFailure(error: unknown, rule: ValidationRule): string {
  const [first = ''] = (error instanceof Error ? error.message : goJson(error)).split('\n')
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'no_such_key') return `${first.replace(/^No/, 'no')} evaluating rule: ${ruleText(rule)}`
  if (code === 'no_such_overload' || code === 'no_matching_overload') {
    return `'no such overload': call arguments did not match a supported operator, function or macro signature for rule: ${ruleText(rule)}`
  }
  return `${first} evaluating rule: ${ruleText(rule)}`
}
