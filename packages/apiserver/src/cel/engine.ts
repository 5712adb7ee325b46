/**
 * The CEL engine, loaded when the first rule is met: most processes start without one, and loading costs more than
 * everything else here.
 */
import type { Environment } from '@marcbachmann/cel-js'
import { OPTIONALS, registerLibrary } from './library.ts'
import { rewriteRule, visit } from './rewrite.ts'

export interface Expression {
  usesOldSelf: boolean
  evaluate(variables: { self: unknown; oldSelf?: unknown }): unknown
}

export interface Engine {
  /** Throws an Error when the expression cannot be parsed or names something unknown. */
  compile(source: string): Expression
  /** Undefined when the text is no duration. */
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
  engine ??= {
    compile: (source) => compile(env, source),
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
  const program = env.parse(rewriteRule(source, ast))
  const { valid, error } = program.check()
  if (!valid) throw error ?? new Error(`rule ${source} does not type-check`)
  return { usesOldSelf, evaluate: (variables) => program(variables) as unknown }
}

function durationReader(env: Environment): (text: string) => unknown {
  const program = env.parse('duration(self)')
  return (text) => {
    try {
      return program({ self: text }) as unknown
    } catch {
      return undefined
    }
  }
}
