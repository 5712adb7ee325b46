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

/** Nested counted repetitions multiply; a pattern beyond this size is rejected as too large. */
export const MAX_PROGRAM = 20_000

class Compiler {
  readonly program: Instruction[] = [{ op: 'match' }]
  readonly sets: CharSet[] = []
  readonly #pattern: string

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  #emit(instruction: Instruction): number {
    if (this.program.length >= MAX_PROGRAM) throw new RegexpSyntaxError('expression too large', this.#pattern)
    return this.program.push(instruction) - 1
  }

  /** Emits code for `node` that continues at `next`; returns its first instruction. */
  compile(node: Node, next: number): number {
    switch (node.kind) {
      case 'empty':
        return next
      case 'set':
        return this.#emit({ op: 'set', set: this.sets.push(node.set) - 1, next })
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
    for (let i = 0; i < min; i++) start = this.compile(node, start)
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
  const compiler = new Compiler(pattern)
  const start = compiler.compile(parseRegexp(pattern), 0)
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
