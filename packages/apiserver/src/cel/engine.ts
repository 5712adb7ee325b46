/**
 * The CEL engine, loaded with the first rule: most processes never need it, and loading it costs more than everything
 * else in this package.
 */
import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import type { Schema } from '../schema/model.ts'
import { checkFields, type FieldCheck } from './field-check.ts'
import { registerLibrary } from './library.ts'
import { MAX_DURATION_LENGTH } from './cost.ts'
import { OPTIONALS } from './library-kit.ts'
import { rewriteRule, visit } from './rewrite.ts'

export interface Expression {
  usesOldSelf: boolean
  evaluate(variables: { self: unknown; oldSelf?: unknown }): unknown
}

/** A match condition of an admission webhook. */
interface Condition {
  evaluate(variables: { object: unknown; oldObject: unknown; request: unknown }): unknown
}

export interface Engine {
  /** Throws an Error when the expression cannot be parsed or references an unknown name. */
  compile(source: string): Expression
  /** Throws as `compile` does. */
  compileCondition(source: string): Condition
  /**
   * As `compile`, for a rule over values of `self` whose result must have the given type. Features that the engine
   * lacks are not reported.
   */
  explainRule(source: string, self: Schema, type: 'boolean' | 'string'): string | undefined
  /** kube-apiserver's error for a match condition; undefined when it is valid. */
  explainCondition(source: string): string | undefined
  /** Undefined when the text is not a duration. */
  readDuration(text: string): unknown
  optionalOf(value: unknown): unknown
}

let engine: Engine | undefined

export function findEngine(): Engine | undefined {
  return engine
}

export async function loadEngine(): Promise<Engine> {
  if (engine !== undefined) return engine
  const cel = await import('@marcbachmann/cel-js')
  const env: Environment = new cel.Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: false })
  env.registerVariable('self', 'dyn').registerVariable('oldSelf', 'dyn')
  OPTIONALS.none = () => cel.Optional.none()
  OPTIONALS.of = (value) => cel.Optional.of(value)
  registerLibrary(env)
  const conditions: Environment = new cel.Environment({
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false,
  })
  for (const name of ['object', 'oldObject', 'request']) conditions.registerVariable(name, 'dyn')
  registerLibrary(conditions)
  engine ??= {
    compile: (source) => compile(env, source),
    compileCondition: (source) => {
      const program = checked(conditions, source, conditions.parse(source).ast)
      return { evaluate: (variables) => program(variables) as unknown }
    },
    explainCondition: (source) => explain(conditions, source),
    explainRule: (source, self, type) => explainRule(env, source, self, type),
    readDuration: durationReader(env),
    optionalOf: (value) => (value === undefined ? cel.Optional.none() : cel.Optional.of(value)),
  }
  return engine
}

function compile(env: Environment, source: string): Expression {
  const { ast } = env.parse(source)
  let usesOldSelf = false
  visit(ast, (node) => {
    if (node.op === 'id' && node.args === 'oldSelf') usesOldSelf = true
  })
  const program = checked(env, source, ast)
  return { usesOldSelf, evaluate: (variables) => program(variables) as unknown }
}

function checked(env: Environment, source: string, ast: ASTNode): ReturnType<Environment['parse']> {
  const program = env.parse(rewriteRule(source, ast, { isCharged: true }))
  const { valid, error } = program.check()
  if (!valid) throw error ?? new Error(`rule ${source} does not type-check`)
  return program
}

function explain(env: Environment, source: string): string | undefined {
  try {
    const { valid, type, error } = env.parse(source).check()
    if (!valid) return `compilation failed: ${problemText(source, error)}`
    return type === 'bool' || type === 'dyn' ? undefined : `must evaluate to bool but got ${type}`
  } catch (error) {
    return `compilation failed: ${problemText(source, error)}`
  }
}

/** Built-ins of the engine that Kubernetes does not have. */
const UNSUPPORTED: ReadonlySet<unknown> = new Set(['math', 'base64', 'regex', 'cel'])

function findUnsupported(ast: ASTNode): ASTNode | undefined {
  let found: ASTNode | undefined
  visit(ast, (node) => {
    if (node.op === 'id' && UNSUPPORTED.has(node.args)) found ??= node
  })
  return found
}

const undeclared = (name: string): string => `undeclared reference to '${name}' (in container '')`

function explainRule(env: Environment, source: string, self: Schema, type: 'boolean' | 'string'): string | undefined {
  const prefix = type === 'boolean' ? 'compilation failed: ' : 'messageExpression compilation failed: '
  let found: FieldCheck
  try {
    const { ast } = env.parse(source)
    const unsupported = findUnsupported(ast)
    if (unsupported !== undefined)
      return `${prefix}${errorText(source, unsupported.start, undeclared(unsupported.args as string))}`
    found = checkFields(source, ast, self)
  } catch (error) {
    return `${prefix}${problemText(source, error)}`
  }
  const { undefinedField: missing } = found
  if (missing !== undefined) return `${prefix}${errorText(source, missing.at, `undefined field '${missing.field}'`)}`
  // Without charges: operations skipped by an exhausted budget have no type.
  const program = env.parse(rewriteRule(source, env.parse(source).ast, { isCharged: false }))
  const { type: dynamic } = program.check()
  const result = found.type ?? (dynamic === undefined || dynamic === 'dyn' ? undefined : dynamic)
  if (result === undefined || result === type || (result === 'bool' && type === 'boolean')) return undefined
  return type === 'boolean' ? 'cel expression must evaluate to a bool' : 'messageExpression must evaluate to a string'
}

/** Position and name in the format of cel-go; the message of a syntax error is the parser's. */
function problemText(source: string, error: unknown): string {
  const [first = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  const at = (error as { node?: { pos?: number } }).node?.pos ?? 0
  const unknown = /^Unknown variable: (.*)$/.exec(first)?.[1]
  return errorText(source, at, unknown === undefined ? first : undeclared(unknown))
}

function errorText(source: string, at: number, what: string): string {
  const before = source.slice(0, at)
  const line = before.split('\n').length
  const column = at - (before.lastIndexOf('\n') + 1)
  return `ERROR: <input>:${line}:${column + 1}: ${what}\n | ${source.split('\n')[line - 1] ?? ''}\n | ${'.'.repeat(column)}^`
}

function durationReader(env: Environment): (text: string) => unknown {
  const program = env.parse('duration(self)')
  return (text) => {
    if (text.length > MAX_DURATION_LENGTH) return undefined
    try {
      return program({ self: text }) as unknown
    } catch {
      return undefined
    }
  }
}
