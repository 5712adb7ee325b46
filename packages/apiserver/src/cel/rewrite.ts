/**
 * Prints a parsed rule in the form that the engine runs. Loop bodies, and operators and functions whose cost depends on
 * the size of their operands, are charged before they run (cost.ts); `matches` becomes the linear-time matcher; `has`
 * accepts any expression before the last field; macros that the engine lacks (loops over two variables, `optMap`,
 * `sortBy`) are translated into supported ones.
 *
 * Guarantees: literals are copied from the source; every operator is parenthesised, so that precedence is that of the
 * source. The engine parses the result again.
 */
import type { ASTNode } from '@marcbachmann/cel-js'

export interface RewriteOptions {
  /** Whether operations are charged to the budget. */
  readonly isCharged: boolean
}

export function rewriteRule(source: string, ast: ASTNode, { isCharged }: RewriteOptions): string {
  return new Printer(source, isCharged).print(ast)
}

/** AST nodes of a loop body that cost one step per iteration. */
const NODES_PER_STEP = 10

/** Functions that take constant time, or that charge the budget themselves. */
const CHEAP: ReadonlySet<string> = new Set([
  'has',
  'dyn',
  'type',
  'bool',
  'hasField',
  'keysOf',
  'mapOf',
  'mergeOf',
  'hasValue',
  'value',
  'orValue',
  'or',
  'of',
  'none',
  'ofNonZeroValue',
  'range',
  'first',
  'last',
  'named',
  'validate',
])

/** Namespaces: values that only carry functions. */
const NAMESPACES: ReadonlySet<string> = new Set(['sets', 'lists', 'strings', 'ip', 'optional', 'format', 'math'])

/** Macros whose second argument is evaluated once per element. */
const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'existsOne', 'filter', 'map'])

/** Loops over two variables, and the loop over keys that replaces each of them. */
const PAIR_LOOPS: ReadonlyMap<string, string> = new Map([
  ['all', 'all'],
  ['exists', 'exists'],
  ['exists_one', 'exists_one'],
  ['existsOne', 'exists_one'],
  ['transformList', 'map'],
  ['transformMap', 'map'],
  ['transformMapEntry', 'map'],
])

class Printer {
  readonly #source: string
  readonly #isCharged: boolean
  #bindings = 0

  constructor(source: string, isCharged: boolean) {
    this.#source = source
    this.#isCharged = isCharged
  }

  print(node: ASTNode): string {
    switch (node.op) {
      case 'value':
        return this.#source.slice(node.start, node.end)
      case 'id':
        return node.args
      case '.':
      case '.?':
        return `${this.#inside(node.args[0])}${node.op}${node.args[1]}`
      case '[]':
      case '[?]':
        return `${this.#inside(node.args[0])}[${node.op === '[?]' ? '?' : ''}${this.print(node.args[1])}]`
      case 'call':
        return this.#call(...node.args)
      case 'rcall':
        return this.#method(...node.args)
      case 'list':
        return `[${this.#all(node.args)}]`
      case 'map':
        return `{${node.args.map(([key, value]) => `${this.print(key)}: ${this.print(value)}`).join(', ')}}`
      case '?:': {
        const [test, yes, no] = node.args
        return `(${this.print(test)} ? ${this.print(yes)} : ${this.print(no)})`
      }
      case '!_':
      case '-_':
        return `(${node.op.charAt(0)}${this.print(node.args)})`
      case '||':
      case '&&':
        return `(${this.print(node.args[0])} ${node.op} ${this.print(node.args[1])})`
      case '==':
      case '!=':
      case '<':
      case '<=':
      case '>':
      case '>=':
      case 'in':
      case '+':
        return this.#operator(node.op, node.args[0], node.args[1])
      case '-':
      case '*':
      case '/':
      case '%':
        return `(${this.print(node.args[0])} ${node.op} ${this.print(node.args[1])})`
    }
  }

  #operator(op: string, left: ASTNode, right: ASTNode): string {
    const isBounded = op === 'in' ? right.op === 'value' : left.op === 'value' || right.op === 'value'
    if (!this.#isCharged || (isBounded && (op !== '+' || isNumber(left) || isNumber(right))))
      return `(${this.print(left)} ${op} ${this.print(right)})`
    return this.#bindAll([left, right], ([a = '', b = '']) => {
      const skipped = op === '+' ? 'dyn(null)' : 'false'
      return `(payOperator(${JSON.stringify(op)}, ${a}, ${b}) ? (${a} ${op} ${b}) : ${skipped})`
    })
  }

  /** A call whose operands are charged before it runs. */
  #paidCall(name: string, operands: readonly ASTNode[], print: (names: readonly string[]) => string): string {
    if (!this.#isCharged || CHEAP.has(name) || operands.length === 0)
      return print(operands.map((node) => this.print(node)))
    return this.#bindAll(
      operands,
      (names) => `(payCall(${JSON.stringify(name)}, [${names.join(', ')}]) ? ${print(names)} : dyn(null))`,
    )
  }

  /** Evaluates each node once and passes the names of the results to `body`. */
  #bindAll(nodes: readonly ASTNode[], body: (names: readonly string[]) => string): string {
    const bound: [name: string, value: string][] = []
    const names = nodes.map((node) => {
      if (node.op === 'value' || isChain(node)) return this.#inside(node)
      const name = `bound_${this.#bindings++}`
      bound.push([name, this.print(node)])
      return name
    })
    return bound.reduceRight((text, [name, value]) => `cel.bind(${name}, ${value}, ${text})`, body(names))
  }

  #all(nodes: readonly ASTNode[]): string {
    return nodes.map((node) => this.print(node)).join(', ')
  }

  /** Operand before a dot or a bracket; a bare number there would be parsed differently. */
  #inside(node: ASTNode): string {
    return node.op === 'value' ? `(${this.print(node)})` : this.print(node)
  }

  #call(name: string, args: ASTNode[]): string {
    const [select] = args
    if (name !== 'has' || args.length !== 1 || select?.op !== '.' || isChain(select.args[0]))
      return name === 'has'
        ? `${name}(${this.#all(args)})`
        : this.#paidCall(name, args, (names) => `${name}(${names.join(', ')})`)
    return `hasField(${this.print(select.args[0])}, ${JSON.stringify(select.args[1])})`
  }

  #method(name: string, receiver: ASTNode, args: ASTNode[]): string {
    const on = this.#inside(receiver)
    const [first, second] = args
    if (first?.op !== 'id') return this.#plainMethod(name, receiver, args)
    if (PAIR_LOOPS.has(name) && second?.op === 'id' && args.length > 2)
      return this.#pairs(name, on, first.args, second.args, args.slice(2))
    if (LOOPS.has(name) && args.length > 1) return this.#loop(name, on, first.args, args.slice(1))
    if (args.length === 2 && second !== undefined) {
      const body = this.print(second)
      if (name === 'optMap') return this.#ifPresent(on, first.args, `optional.of(${body})`)
      if (name === 'optFlatMap') return this.#ifPresent(on, first.args, body)
      if (name === 'sortBy')
        return this.#bind(on, (list) => `sortedBy(${list}, ${paid('map', list, first.args, body, countNodes(second))})`)
    }
    return this.#plainMethod(name, receiver, args)
  }

  #plainMethod(name: string, receiver: ASTNode, args: readonly ASTNode[]): string {
    const called = name === 'matches' ? 'matchesPattern' : name
    if (receiver.op === 'id' && NAMESPACES.has(receiver.args))
      return this.#paidCall(name, args, (names) => `${receiver.args}.${called}(${names.join(', ')})`)
    return this.#paidCall(name, [receiver, ...args], ([on = '', ...names]) => `${on}.${called}(${names.join(', ')})`)
  }

  /** `map` with three arguments filters first. */
  #loop(name: string, on: string, variable: string, args: readonly ASTNode[]): string {
    const bodies = args.map((arg) => this.print(arg))
    const [test = '', body] = bodies
    const nodes = args.map(countNodes)
    if (body === undefined) return paid(name, on, variable, test, nodes[0] ?? 0)
    return paid(name, paid('filter', on, variable, test, nodes[0] ?? 0), variable, body, nodes[1] ?? 0)
  }

  /**
   * `e.all(k, v, body)` becomes `keysOf(e).all(k, cel.bind(v, e[k], body))`; a filter before the body selects the keys.
   */
  #pairs(name: string, on: string, key: string, value: string, rest: readonly ASTNode[]): string {
    const [test, body] = rest.length > 1 ? rest : [undefined, rest[0]]
    const printed = body === undefined ? '' : this.print(body)
    return this.#bind(on, (pairs) => {
      const withValue = (text: string): string => `cel.bind(${value}, ${pairs}[${key}], ${text})`
      const all = `keysOf(${pairs})`
      const keys = test === undefined ? all : paid('filter', all, key, withValue(this.print(test)), countNodes(test))
      const results = paid(PAIR_LOOPS.get(name) ?? name, keys, key, withValue(printed), countNodes(body))
      if (name === 'transformMap') return `mapOf(${keys}, ${results})`
      return name === 'transformMapEntry' ? `mergeOf(${results})` : results
    })
  }

  #ifPresent(on: string, variable: string, body: string): string {
    return this.#bind(
      on,
      (value) => `(${value}.hasValue() ? cel.bind(${variable}, ${value}.value(), ${body}) : optional.none())`,
    )
  }

  #bind(value: string, body: (name: string) => string): string {
    const name = `bound_${this.#bindings++}`
    return `cel.bind(${name}, ${value}, ${body(name)})`
  }
}

/** A loop whose body runs only while the budget lasts; an iteration costs by the number of nodes in the body. */
function paid(loop: string, on: string, variable: string, body: string, nodes: number): string {
  const steps = 1 + Math.floor(nodes / NODES_PER_STEP)
  return `${on}.${loop}(${variable}, (maySpend(${steps}) ? ${body} : ${loop === 'map' ? 'dyn(null)' : 'false'}))`
}

function countNodes(node: ASTNode | undefined): number {
  let count = 0
  if (node !== undefined) visit(node, () => (count += 1))
  return count
}

function isNumber(node: ASTNode): boolean {
  return node.op === 'value' && (typeof node.args === 'bigint' || typeof node.args === 'number')
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
