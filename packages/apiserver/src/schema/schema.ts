/**
 * Entry point of schema/: compiles a structural schema into closures once, so that each request only runs them.
 *
 * Place in the flow: the registry prepares the schema of every served version; requests call prune, applyDefaults and
 * validate, in this order. Everything is compiled on first use.
 */
import { getPath } from '../codec/object-shape.ts'
import { findEngine, loadEngine } from '../cel/engine.ts'
import { compileRules, hasRules } from './cel.ts'
import type { Rules } from './cel.ts'
import { checkOf } from './check.ts'
import { defaultsOf } from './defaults.ts'
import { embeddedCheck } from './embedded.ts'
import { invalid } from './field-error.ts'
import { listTypeCheck } from './list-type.ts'
import type { Cause, CauseReason, CompiledSchema, Schema } from './model.ts'
import { pruneUnknown } from './prune.ts'
import { NO_FIELD, reportViolations } from './report.ts'

export { checkStructural } from './definition/structural.ts'

/** Compiles a schema, after loading the CEL engine if it has rules. */
export async function prepareSchema(schema: Schema): Promise<CompiledSchema> {
  if (hasRules(schema)) await loadEngine()
  return compileSchema(schema)
}

/** For schemas without rules, or when the engine is loaded; throws otherwise, so that no rule is ever skipped. */
export function compileSchema(schema: Schema): CompiledSchema {
  const rules = rulesOf(schema)
  return {
    schema,
    validate: (value, old, part = 'whole') => {
      const causes = part === 'status' ? violationsOfStatus(schema, value, old) : violationsOf(schema, value, old)
      if (part === 'whole') embeddedCheck(schema)?.(value, '', causes)
      const ofLists = listViolations(schema, value)
      // List violations of the stored object do not block an update.
      if (ofLists.length > 0 && (old === undefined || listViolations(schema, old).length === 0)) causes.push(...ofLists)
      if (rules !== undefined) causes.push(...(causes.some(isBlocking) ? [NOT_CHECKED] : rules.check(value, old)))
      return causes
    },
    prune: (value) => pruneUnknown(schema, value, true),
    applyDefaults: (value) => defaultsOf(schema)?.(value),
    unknownFields: (value) => pruneUnknown(schema, value, false),
    warnings: rules?.warnings ?? [],
  }
}

function violationsOf(schema: Schema, value: unknown, old: unknown): Cause[] {
  return checkOf(schema)(value) ? [] : reportViolations(schema, value, old)
}

/**
 * kube-apiserver validates a written status separately: paths in messages begin at the status, and the rest may be
 * invalid.
 */
function violationsOfStatus(schema: Schema, value: unknown, old: unknown): Cause[] {
  const status = getPath(value, 'status')
  const statusSchema = schema.properties?.['status']
  if (status === undefined || statusSchema === undefined) return []
  return violationsOf(statusSchema, status, getPath(old, 'status')).map((cause) => ({
    ...cause,
    field: cause.field === '' || cause.field === NO_FIELD ? 'status' : `status.${cause.field}`,
  }))
}

function listViolations(schema: Schema, value: unknown): Cause[] {
  const causes: Cause[] = []
  listTypeCheck(schema)?.(value, '', causes)
  return causes
}

function rulesOf(schema: Schema): Rules | undefined {
  // Built-in types have no rules, and searching for them would parse all their tables.
  if (schema.typeName !== undefined || !hasRules(schema)) return undefined
  const engine = findEngine()
  if (engine === undefined) throw new Error('the schema has CEL rules and the engine is not loaded; use prepareSchema')
  return compileRules(schema, engine)
}

/** Violations after which the object does not have the shape that rules require. */
const BLOCKING: ReadonlySet<CauseReason> = new Set<CauseReason>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])

function isBlocking({ reason }: Cause): boolean {
  return BLOCKING.has(reason)
}

const NOT_CHECKED: Cause = invalid(
  NO_FIELD,
  null,
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
)
