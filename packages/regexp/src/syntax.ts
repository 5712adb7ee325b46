/**
 * Parses RE2 syntax (as Go's `regexp`) into a syntax tree. No back-references, no look-around: the remaining syntax can
 * always be matched in linear time.
 *
 * Place in the flow: patterns are parsed here, measured and compiled by program.ts, and run by the matchers. The cost of
 * parsing is proportional to the length of the pattern.
 */
import { parseClass, perlClass, unicodeClass } from './char-class.ts'
import type { CharSet } from './char-class.ts'
import { RegexpSyntaxError, parseEscape } from './escape.ts'

export type Node =
  | { kind: 'empty' }
  | { kind: 'set'; set: CharSet }
  | { kind: 'assert'; what: Assertion }
  | { kind: 'sequence'; nodes: Node[] }
  | { kind: 'choice'; nodes: Node[] }
  /** `isCounted`: written with braces. */
  | { kind: 'repeat'; node: Node; min: number; max: number; isLazy: boolean; isCounted: boolean }

export type Assertion = 'text-start' | 'text-end' | 'line-start' | 'line-end' | 'word' | 'not-word'

interface Flags {
  foldsCase: boolean
  isMultiline: boolean
  dotIsAll: boolean
  /** Repetitions are lazy by default, and greedy with a `?`. */
  isUngreedy: boolean
}

/** Go's limit of a counted repetition. */
const MAX_REPEAT = 1000
const MAX_DEPTH = 1000
/** Characters of the flags of a group; Go accepts a flag twice. */
const MAX_FLAGS = 100

/** @param isStrict refuses what Go accepts and RE2 does not: two groups of one name, repetitions within `{0}` */
export function parseRegexp(pattern: string, isStrict = false): Node {
  return new Parser(pattern, isStrict).parse()
}

class Parser {
  readonly #chars: string[]
  readonly #pattern: string
  #at = 0
  #depth = 0
  readonly #isStrict: boolean
  readonly #names = new Set<string>()
  /** Of nodes with counted repetitions: how often their most repeated part is repeated. */
  readonly #repeats = new WeakMap<Node, number>()
  #flags: Flags = { foldsCase: false, isMultiline: false, dotIsAll: false, isUngreedy: false }

  constructor(pattern: string, isStrict: boolean) {
    this.#pattern = pattern
    this.#isStrict = isStrict
    this.#chars = Array.from(pattern)
  }

  parse(): Node {
    const node = this.#choice()
    if (this.#at < this.#chars.length) throw new RegexpSyntaxError('unexpected )', this.#pattern)
    return node
  }

  /** At most `length` characters from a place on: a pattern that is copied at each of its parts would cost its square. */
  #ahead(length: number, from = this.#at): string {
    return this.#chars.slice(from, from + length).join('')
  }

  /** @param text ASCII */
  #take(text: string): boolean {
    for (let index = 0; index < text.length; index++) if (this.#chars[this.#at + index] !== text[index]) return false
    this.#at += text.length
    return true
  }

  #choice(): Node {
    if (++this.#depth > MAX_DEPTH) throw new RegexpSyntaxError('expression nests too deeply', this.#pattern)
    const nodes = [this.#sequence()]
    while (this.#take('|')) nodes.push(this.#sequence())
    this.#depth--
    return nodes.length === 1 ? nodes[0]! : { kind: 'choice', nodes }
  }

  #sequence(): Node {
    const nodes: Node[] = []
    while (this.#at < this.#chars.length && this.#chars[this.#at] !== '|' && this.#chars[this.#at] !== ')') {
      nodes.push(this.#repetitions(this.#atom()))
    }
    return nodes.length === 1 ? nodes[0]! : nodes.length === 0 ? { kind: 'empty' } : { kind: 'sequence', nodes }
  }

  #repetitions(node: Node): Node {
    let result = node
    const start = this.#at
    for (let count = 0; ; count++) {
      const operatorStart = this.#at
      const bounds = this.#bounds()
      if (bounds === undefined) return result
      if (count > 0)
        throw new RegexpSyntaxError('invalid nested repetition operator', this.#chars.slice(start, this.#at).join(''))
      const isCounted = this.#chars[operatorStart] === '{'
      const isLazy = this.#take('?') !== this.#flags.isUngreedy
      const [min, max] = bounds
      if (min > MAX_REPEAT || (max !== Infinity && (max > MAX_REPEAT || max < min))) {
        throw new RegexpSyntaxError('invalid repeat count', this.#chars.slice(operatorStart, this.#at).join(''))
      }
      result = { kind: 'repeat', node: result, min, max, isLazy, isCounted }
      if (isCounted && (min >= 2 || max >= 2) && this.#repeatsOf(result) > MAX_REPEAT)
        throw new RegexpSyntaxError('invalid repeat count', this.#chars.slice(operatorStart, this.#at).join(''))
    }
  }

  /** As Go's `repeatIsValid`: counted repetitions within each other multiply. */
  #repeatsOf(node: Node): number {
    if (node.kind === 'empty' || node.kind === 'set' || node.kind === 'assert') return 1
    let repeats = this.#repeats.get(node)
    if (repeats !== undefined) return repeats
    repeats = 1
    if (node.kind !== 'repeat') for (const each of node.nodes) repeats = Math.max(repeats, this.#repeatsOf(each))
    else if (node.max !== 0 || this.#isStrict) {
      const times = node.max === Infinity ? node.min : node.max
      repeats = (node.isCounted ? Math.max(1, times) : 1) * this.#repeatsOf(node.node)
    }
    this.#repeats.set(node, repeats)
    return repeats
  }

  #bounds(): [number, number] | undefined {
    if (this.#take('*')) return [0, Infinity]
    if (this.#take('+')) return [1, Infinity]
    if (this.#take('?')) return [0, 1]
    if (this.#chars[this.#at] !== '{') return undefined
    const match = /^\{(\d+)(?:(,)(\d*))?\}/.exec(this.#ahead(30))
    if (match === null) return undefined
    this.#at += match[0].length
    const min = Number(match[1])
    return [min, match[2] === undefined ? min : match[3] === '' ? Infinity : Number(match[3])]
  }

  #atom(): Node {
    const char = this.#chars[this.#at]!
    switch (char) {
      case '(':
        return this.#group()
      case '[': {
        const { set, length } = parseClass(this.#chars, this.#at, this.#flags.foldsCase)
        this.#at += length
        return { kind: 'set', set }
      }
      case '.':
        this.#at++
        return {
          kind: 'set',
          set: { ranges: this.#flags.dotIsAll ? [] : [[10, 10]], classes: [], isNegated: true, foldsCase: false },
        }
      case '^':
        this.#at++
        return { kind: 'assert', what: this.#flags.isMultiline ? 'line-start' : 'text-start' }
      case '$':
        this.#at++
        return { kind: 'assert', what: this.#flags.isMultiline ? 'line-end' : 'text-end' }
      case '*':
      case '+':
      case '?':
        throw new RegexpSyntaxError('missing argument to repetition operator', char)
      case '{': {
        const start = this.#at
        if (this.#bounds() !== undefined) {
          const operator = this.#chars.slice(start, this.#at).join('')
          throw new RegexpSyntaxError('missing argument to repetition operator', operator)
        }
        this.#at++
        return this.#literal(char.codePointAt(0)!)
      }
      case '\\':
        return this.#escape()
      default:
        this.#at++
        return this.#literal(char.codePointAt(0)!)
    }
  }

  #literal(code: number): Node {
    return {
      kind: 'set',
      set: { ranges: [[code, code]], classes: [], isNegated: false, foldsCase: this.#flags.foldsCase },
    }
  }

  #group(): Node {
    const start = this.#at
    this.#at++
    const outer = { ...this.#flags }
    if (this.#take('?')) {
      if (!this.#nameOfGroup(start) && !this.#flagsOfGroup(start)) return { kind: 'empty' }
    }
    const node = this.#choice()
    if (!this.#take(')')) throw new RegexpSyntaxError('missing closing )', this.#pattern)
    this.#flags = outer
    return node
  }

  /** `(?P<name>` and `(?<name>`. */
  #nameOfGroup(start: number): boolean {
    const open = this.#chars[this.#at] === 'P' ? this.#at + 1 : this.#at
    if (this.#chars[open] !== '<') return false
    const end = this.#chars.indexOf('>', open)
    const name = this.#chars.slice(open + 1, end < 0 ? undefined : end).join('')
    const whole = this.#chars.slice(start, end < 0 ? undefined : end + 1).join('')
    if (end < 0 || !/^\w+$/.test(name)) throw new RegexpSyntaxError('invalid named capture', whole)
    if (this.#isStrict && this.#names.has(name)) throw new RegexpSyntaxError('duplicate capture group name', name)
    this.#names.add(name)
    this.#at = end + 1
    return true
  }

  /** `(?i:` opens a group (true), `(?i)` changes the flags of what follows (false). */
  #flagsOfGroup(start: number): boolean {
    const match = /^([imsU]*)(?:-([imsU]+))?([:)])/.exec(this.#ahead(MAX_FLAGS))
    if (match === null) throw new RegexpSyntaxError('invalid or unsupported Perl syntax', this.#ahead(3, start))
    this.#at += match[0].length
    const flags = { ...this.#flags }
    for (const [letters, value] of [
      [match[1] ?? '', true],
      [match[2] ?? '', false],
    ] as const) {
      if (letters.includes('i')) flags.foldsCase = value
      if (letters.includes('m')) flags.isMultiline = value
      if (letters.includes('s')) flags.dotIsAll = value
      if (letters.includes('U')) flags.isUngreedy = value
    }
    this.#flags = flags
    return match[3] === ':'
  }

  #escape(): Node {
    const next = this.#chars[this.#at + 1]
    if (next === undefined) throw new RegexpSyntaxError('trailing backslash at end of expression', '')
    const assertion = ASSERTIONS.get(next)
    if (assertion !== undefined) {
      this.#at += 2
      return { kind: 'assert', what: assertion }
    }
    if (next === 'Q') return this.#quoted()
    const { foldsCase } = this.#flags
    const set = perlClass(next, foldsCase)
    if (set !== undefined) {
      this.#at += 2
      return { kind: 'set', set }
    }
    if (next === 'p' || next === 'P') {
      const { set: unicode, length } = unicodeClass(this.#chars, this.#at, foldsCase)
      this.#at += length
      return { kind: 'set', set: unicode }
    }
    const { code, length } = parseEscape(this.#chars, this.#at)
    this.#at += length
    return this.#literal(code)
  }

  #quoted(): Node {
    const nodes: Node[] = []
    this.#at += 2
    while (this.#at < this.#chars.length && !this.#take('\\E'))
      nodes.push(this.#literal(this.#chars[this.#at++]!.codePointAt(0)!))
    return { kind: 'sequence', nodes }
  }
}

const ASSERTIONS: ReadonlyMap<string, Assertion> = new Map([
  ['A', 'text-start'],
  ['z', 'text-end'],
  ['b', 'word'],
  ['B', 'not-word'],
])
