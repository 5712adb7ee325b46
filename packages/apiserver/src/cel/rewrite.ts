/**
 * Prepares the text of a rule: loop bodies ask for budget before they run, `matches` becomes our linear-time matcher, and
 * `has` takes any expression before the last field, which the engine's own macro does not; loops over two variables become
 * loops over keys.
 *
 * Works on source ranges of the parsed rule, so that every edit is exact; the result is parsed again by the engine.
 */
import type { ASTNode } from '@marcbachmann/cel-js'

interface Edit {
  at: number
  remove: number
  insert: string
}

/** Macros whose second argument runs once per element. */
const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'existsOne', 'filter', 'map'])

export function rewriteRule(source: string, ast: ASTNode): string {
  const edits: Edit[] = []
  visit(ast, (node) => {
    if (node.op === 'call') rewriteHas(source, node, edits)
    if (node.op !== 'rcall') return
    const [name, receiver, args] = node.args
    if (name === 'matches' && args.length === 1) renameMatches(source, receiver, edits)
    if (isOverPairs(name, args)) {
      rewritePairs(source, node, edits)
      return
    }
    if (!LOOPS.has(name) || args.length < 2) return
    const otherwise = name === 'map' && args.length === 2 ? 'dyn(null)' : 'false'
    const [start, end] = bodyRange(source, node, args)
    edits.push({ at: start, remove: 0, insert: '(maySpend() ? (' }, { at: end, remove: 0, insert: `) : ${otherwise})` })
  })
  // Later edits first; at one place an opening of an inner body must come after that of an outer one.
  let text = source
  for (const { at, remove, insert } of edits
    .map((edit, i) => ({ ...edit, i }))
    .toSorted((a, b) => b.at - a.at || b.i - a.i)) {
    text = text.slice(0, at) + insert + text.slice(at + remove)
  }
  return text
}

const PAIR_LOOPS: ReadonlyMap<string, string> = new Map([
  ['all', 'all'],
  ['exists', 'exists'],
  ['exists_one', 'exists_one'],
  ['existsOne', 'exists_one'],
  ['transformList', 'map'],
  ['transformMap', 'map'],
])

/** `map(x, filter, body)` has three arguments too, but its second is no variable. */
function isOverPairs(name: string, args: readonly ASTNode[]): boolean {
  return PAIR_LOOPS.has(name) && args.length >= 3 && args[0]?.op === 'id' && args[1]?.op === 'id'
}

/**
 * `e.all(k, v, body)` becomes `cel.bind(r, e, keysOf(r).all(k, cel.bind(v, r[k], body)))`. transformMap makes a map of the
 * results again; a third argument before the body chooses the keys.
 */
function rewritePairs(source: string, node: ASTNode, edits: Edit[]): void {
  const [name, receiver, args] = node.args as [string, ASTNode, ASTNode[]]
  const [key, value, ...rest] = args as [ASTNode, ASTNode, ...ASTNode[]]
  const [k, v] = [key.args as string, value.args as string]
  const holder = `pairs_${node.start}_${receiver.end}`
  const dot = /^[\s)]*\.\s*/.exec(source.slice(receiver.end))?.[0] ?? '.'
  const closing = dot.split(')').length - 1
  let start = receiver.start
  for (let i = 0; i < closing; i++) start = source.lastIndexOf('(', start - 1)
  const bodyStart = source.indexOf(',', value.end) + 1
  const end = source.lastIndexOf(')', node.end - 1)
  const open = `cel.bind(${v}, ${holder}[${k}], (`
  const isMap = name === 'transformMap'
  edits.push({ at: start, remove: 0, insert: `cel.bind(${holder}, ` })
  const dotAt = receiver.end + dot.lastIndexOf('.')
  const loop = PAIR_LOOPS.get(name) ?? name
  const [filter, body] = rest.length > 1 ? [rest[0], rest[1]] : [undefined, rest[0]]
  const comma = filter === undefined || body === undefined ? -1 : source.lastIndexOf(',', body.start)
  const chosen =
    filter === undefined
      ? `keysOf(${holder})`
      : `keysOf(${holder}).filter(${k}, ${open}${source.slice(bodyStart, comma)})))`
  const head = `, ${isMap ? `mapOf(${chosen}, ${chosen}` : chosen}.${loop}(${k}, (maySpend() ? (${open}`
  const bodyAt = comma < 0 ? bodyStart : comma + 1
  const otherwise = loop === 'map' ? 'dyn(null)' : 'false'
  edits.push({ at: dotAt, remove: bodyAt - dotAt, insert: head })
  // In place of the loop's own parenthesis: at one place two edits of nested loops would have no order.
  edits.push({ at: end, remove: 1, insert: `))) : ${otherwise})${isMap ? ')' : ''}))` })
}

/** From the comma after the variable to the next comma or the closing parenthesis: ranges of nodes leave out parentheses. */
function bodyRange(source: string, call: ASTNode, args: readonly ASTNode[]): [number, number] {
  const start = source.indexOf(',', args[0]!.end) + 1
  const next = args[2]
  return [start, next === undefined ? source.lastIndexOf(')', call.end - 1) : source.lastIndexOf(',', next.start)]
}

function renameMatches(source: string, receiver: ASTNode, edits: Edit[]): void {
  const match = /^[\s)]*\.\s*(?=matches\s*\()/.exec(source.slice(receiver.end))
  if (match !== null)
    edits.push({ at: receiver.end + match[0].length, remove: 'matches'.length, insert: 'matchesPattern' })
}

/** `has(a[0].b)` becomes `hasField(a[0], "b")`; plain chains of fields stay with the engine. */
function rewriteHas(source: string, node: ASTNode, edits: Edit[]): void {
  const [name, args] = node.args as [string, ASTNode[]]
  const [select] = args
  if (name !== 'has' || args.length !== 1 || select?.op !== '.') return
  const [base, field] = select.args
  if (isChain(base)) return
  const dot = source.lastIndexOf('.', select.pos)
  const end = source.indexOf(field, dot) + field.length
  edits.push({ at: node.start, remove: 'has'.length, insert: 'hasField' })
  edits.push({ at: dot, remove: end - dot, insert: `, ${JSON.stringify(field)}` })
}

function isChain(node: ASTNode): boolean {
  return node.op === 'id' || ((node.op === '.' || node.op === '.?') && isChain(node.args[0]))
}

/** Every node, parents before children. */
export function visit(node: ASTNode, each: (node: ASTNode) => void): void {
  each(node)
  visitArgs(node.args, each)
}

function visitArgs(args: unknown, each: (node: ASTNode) => void): void {
  if (Array.isArray(args)) for (const arg of args) visitArgs(arg, each)
  else if (typeof args === 'object' && args !== null && 'op' in args) visit(args as ASTNode, each)
}
