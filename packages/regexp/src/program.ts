/**
 * A pattern as a program for a nondeterministic automaton. Of the two branches of a `split`, `a` has priority: RE2's
 * leftmost-first rule is the order of the branches.
 */
import type { CharSet } from './char-class.ts'
import { RegexpSyntaxError } from './escape.ts'
import { parseRegexp } from './syntax.ts'
import type { Assertion, Node } from './syntax.ts'

type Instruction =
  | { op: 'set'; set: number; next: number }
  | { op: 'assert'; what: Assertion; next: number }
  | { op: 'split'; a: number; b: number }
  | { op: 'match' }

/** Instructions; a pattern beyond it is refused as too large. */
export const MAX_PROGRAM = 20_000

/**
 * Instructions of a pattern with its counted repetitions written out, which multiply; known before anything is compiled.
 * @param setSize what a set of characters counts for
 */
function sizeOf(node: Node, setSize: (set: CharSet) => number): number {
  switch (node.kind) {
    case 'empty':
      return 0
    case 'set':
      return setSize(node.set)
    case 'assert':
      return 1
    case 'sequence':
      return node.nodes.reduce((sum, each) => sum + sizeOf(each, setSize), 0)
    case 'choice':
      return node.nodes.reduce((sum, each) => sum + sizeOf(each, setSize), node.nodes.length - 1)
    case 'repeat': {
      const once = sizeOf(node.node, setSize)
      if (node.max === Infinity) return once * (node.min + 1) + 1
      return once * node.max + (node.max - node.min)
    }
  }
}

/**
 * The size of a pattern for engines that match octets, as RE2 in Envoy does: a set of characters is several instructions there.
 * Throws a RegexpSyntaxError with Go's message.
 */
export function measureRegexp(pattern: string): number {
  return sizeOf(parseRegexp(pattern, true), octetSize)
}

/** Instructions for all octet sequences of `.`, of a negated set, and of a Unicode class, rounded up. */
const ANY_SIZE = 12
const UNICODE_SIZE = 1_000

function octetSize({ ranges, classes, isNegated, foldsCase }: CharSet): number {
  const ofRanges = ranges.length * (foldsCase ? 2 : 1)
  const isWide = isNegated || ranges.some(([, high]) => high > 127)
  return ofRanges + (isWide ? ANY_SIZE : 0) + (classes.length > 0 ? UNICODE_SIZE : 0)
}

class Compiler {
  readonly program: Instruction[] = [{ op: 'match' }]
  readonly sets: CharSet[] = []
  /** A repeated set is one set. */
  readonly #setIds = new Map<CharSet, number>()

  #emit(instruction: Instruction): number {
    return this.program.push(instruction) - 1
  }

  #idOf(set: CharSet): number {
    let id = this.#setIds.get(set)
    if (id === undefined) this.#setIds.set(set, (id = this.sets.push(set) - 1))
    return id
  }

  /** Emits code for `node` that continues at `next`; returns its first instruction. */
  compile(node: Node, next: number): number {
    switch (node.kind) {
      case 'empty':
        return next
      case 'set':
        return this.#emit({ op: 'set', set: this.#idOf(node.set), next })
      case 'assert':
        return this.#emit({ op: 'assert', what: node.what, next })
      case 'sequence':
        return node.nodes.reduceRight((after, child) => this.compile(child, after), next)
      case 'choice':
        return node.nodes
          .map((child) => this.compile(child, next))
          .reduceRight((b, a) => this.#emit({ op: 'split', a, b }))
      case 'repeat':
        return this.#repeat(node, next)
    }
  }

  #repeat({ node, min, max, isLazy }: Extract<Node, { kind: 'repeat' }>, next: number): number {
    const split = (again: number): Instruction =>
      isLazy ? { op: 'split', a: next, b: again } : { op: 'split', a: again, b: next }
    let start = next
    if (max === Infinity) {
      start = this.#emit(split(next))
      const body = this.compile(node, start)
      this.program[start] = split(body)
    } else {
      for (let i = min; i < max; i++) start = this.#emit(split(this.compile(node, start)))
    }
    for (let i = 0; i < min; i++) {
      const before = this.program.length
      start = this.compile(node, start)
      // Repetitions of nothing have no size, and are not bounded by it.
      if (this.program.length === before) break
    }
    return start
  }
}

export interface Program {
  readonly instructions: readonly Instruction[]
  readonly sets: readonly CharSet[]
  readonly start: number
}

/** Throws a RegexpSyntaxError with Go's message. */
export function compileRegexp(pattern: string): Program {
  const node = parseRegexp(pattern)
  if (sizeOf(node, () => 1) >= MAX_PROGRAM) throw new RegexpSyntaxError('expression too large', pattern)
  const compiler = new Compiler()
  const start = compiler.compile(node, 0)
  return { instructions: compiler.program, sets: compiler.sets, start }
}

/** Kind of the character before a position in the text. */
export const START_OF_TEXT = 0
const AFTER_WORD = 1
const AFTER_NEWLINE = 2
const AFTER_OTHER = 3

export function kindBefore(code: number): number {
  return isWord(code) ? AFTER_WORD : code === 10 ? AFTER_NEWLINE : AFTER_OTHER
}

export function isWord(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95
}

/** Whether an assertion holds between the previous character and `code`, which is negative at the end of the text. */
export function holds(what: Assertion, before: number, code: number): boolean {
  switch (what) {
    case 'text-start':
      return before === START_OF_TEXT
    case 'line-start':
      return before === START_OF_TEXT || before === AFTER_NEWLINE
    case 'text-end':
      return code < 0
    case 'line-end':
      return code < 0 || code === 10
    case 'word':
      return (before === AFTER_WORD) !== isWord(code)
    case 'not-word':
      return (before === AFTER_WORD) === isWord(code)
  }
}
