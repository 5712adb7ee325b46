/**
 * Finds fields that a rule references and its schema does not have. The engine treats every value as dynamic; this pass
 * adds the part of cel-go's type check that matters most to CRD authors.
 *
 * Guarantees: parts that the schema leaves open (maps, preserved fields, results of functions) are never reported.
 */
import type { ASTNode } from '@marcbachmann/cel-js'
import type { Schema } from '../schema/model.ts'
import { escapeName } from './value.ts'

interface UndefinedField {
  /** Offset in the source, as cel-go reports it. */
  readonly at: number
  readonly field: string
}

export interface FieldCheck {
  readonly undefinedField: UndefinedField | undefined
  /** Type of the whole expression, where the schema determines it. */
  readonly type: Schema['type'] | undefined
}

type Scope = ReadonlyMap<string, Schema | undefined>

const LOOPS: ReadonlySet<string> = new Set([
  'all',
  'exists',
  'exists_one',
  'existsOne',
  'filter',
  'map',
  'transformList',
  'transformMap',
  'transformMapEntry',
  'sortBy',
])

export function checkFields(source: string, ast: ASTNode, self: Schema): FieldCheck {
  const found: UndefinedField[] = []
  const schema = infer(
    ast,
    new Map([
      ['self', self],
      ['oldSelf', self],
    ]),
    { source, found },
  )
  return { undefinedField: found[0], type: schema?.type }
}

interface Walk {
  readonly source: string
  readonly found: UndefinedField[]
}

/** The schema of the result of a node; undefined when unknown. */
function infer(node: ASTNode, scope: Scope, walk: Walk): Schema | undefined {
  if (node.op === 'id') return scope.get(node.args)
  if (node.op === '.') {
    const [base, field] = node.args
    return select(infer(base, scope, walk), field, walk.source.lastIndexOf('.', node.pos), walk)
  }
  if (node.op === '[]') {
    const [base, index] = node.args
    infer(index, scope, walk)
    return elementOf(infer(base, scope, walk))
  }
  if (node.op === 'rcall') return inferCall(node.args, scope, walk)
  const [tested, at] = node.op === 'call' ? testedField(node.args, walk.source, node.start) : []
  if (tested === undefined || at === undefined) visitAll(node.args, scope, walk)
  else select(infer(tested[0], scope, walk), tested[1], at, walk)
  return undefined
}

/** Of `has(a.b)`: `a`, `b`, and the offset that cel-go reports. */
function testedField(
  [name, args]: [string, ASTNode[]],
  source: string,
  start: number,
): [] | [field: [ASTNode, string], at: number] {
  const [argument] = args
  return name === 'has' && argument?.op === '.' ? [argument.args, source.indexOf('(', start)] : []
}

function visitAll(args: unknown, scope: Scope, walk: Walk): void {
  if (Array.isArray(args)) for (const arg of args) visitAll(arg, scope, walk)
  else if (typeof args === 'object' && args !== null && 'op' in args) infer(args as ASTNode, scope, walk)
}

function inferCall([name, receiver, args]: [string, ASTNode, ASTNode[]], scope: Scope, walk: Walk): Schema | undefined {
  const base = infer(receiver, scope, walk)
  const [first, second] = args
  const isLoop = LOOPS.has(name) && first?.op === 'id'
  if (!isLoop) {
    for (const arg of args) infer(arg, scope, walk)
    return undefined
  }
  const isMap = base?.type === 'object'
  // Two variables: key and value, or index and element.
  const hasTwo = second?.op === 'id' && args.length > 2
  const inner = new Map(scope)
  inner.set(first.args, hasTwo || isMap ? undefined : elementOf(base))
  if (hasTwo) inner.set(second.args, elementOf(base))
  for (const arg of args.slice(hasTwo ? 2 : 1)) infer(arg, inner, walk)
  return name === 'filter' ? base : undefined
}

function elementOf(schema: Schema | undefined): Schema | undefined {
  if (schema?.type === 'array') return schema.items
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

function select(schema: Schema | undefined, field: string, at: number, walk: Walk): Schema | undefined {
  if (schema === undefined) return undefined
  const { properties, additionalProperties } = schema
  if (properties === undefined || additionalProperties !== undefined) return elementOf(schema)
  const name = Object.keys(properties).find(
    (key) => escapeName(key) === field || (key === field && escapeName(key) === `__${key}__`),
  )
  if (name !== undefined) return properties[name]
  const isOpen =
    schema['x-kubernetes-preserve-unknown-fields'] === true || schema['x-kubernetes-embedded-resource'] === true
  if (!isOpen) walk.found.push({ at, field })
  return undefined
}
