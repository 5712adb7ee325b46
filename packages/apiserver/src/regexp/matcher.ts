/**
 * Linear-time matching of RE2 patterns: the pattern becomes a nondeterministic automaton, its sets of states are made
 * deterministic while they are met.
 *
 * Guarantees: time is at most text length × program size, whatever the pattern; memory is bounded (the cache of states
 * is emptied when full, programs have a size limit). Only the question "does it match somewhere" is answered.
 */
import { inSet } from './char-class.ts'
import type { CharSet } from './char-class.ts'
import { RegexpSyntaxError } from './escape.ts'
import { parseRegexp } from './syntax.ts'
import type { Assertion, Node } from './syntax.ts'

type Instruction =
  | { op: 'set'; set: number; next: number }
  | { op: 'assert'; what: Assertion; next: number }
  | { op: 'split'; a: number; b: number }
  | { op: 'match' }

/** Nested counted repetitions multiply; beyond this a pattern is refused as too large. */
const MAX_PROGRAM = 20_000
const MAX_CACHED_STATES = 2_000

class Compiler {
  readonly program: Instruction[] = [{ op: 'match' }]
  readonly sets: CharSet[] = []
  private readonly pattern: string

  constructor(pattern: string) {
    this.pattern = pattern
  }

  private emit(instruction: Instruction): number {
    if (this.program.length >= MAX_PROGRAM) throw new RegexpSyntaxError('expression too large', this.pattern)
    return this.program.push(instruction) - 1
  }

  /** Code for `node` that continues at `next`; returns where it begins. */
  compile(node: Node, next: number): number {
    switch (node.kind) {
      case 'empty':
        return next
      case 'set':
        return this.emit({ op: 'set', set: this.sets.push(node.set) - 1, next })
      case 'assert':
        return this.emit({ op: 'assert', what: node.what, next })
      case 'sequence':
        return node.nodes.reduceRight((after, child) => this.compile(child, after), next)
      case 'choice':
        return node.nodes
          .map((child) => this.compile(child, next))
          .reduceRight((b, a) => this.emit({ op: 'split', a, b }))
      case 'repeat':
        return this.repeat(node.node, node.min, node.max, next)
    }
  }

  private repeat(node: Node, min: number, max: number, next: number): number {
    let start = next
    if (max === Infinity) {
      start = this.emit({ op: 'split', a: next, b: next })
      const body = this.compile(node, start)
      this.program[start] = { op: 'split', a: body, b: next }
    } else {
      for (let i = min; i < max; i++) start = this.emit({ op: 'split', a: this.compile(node, start), b: next })
    }
    for (let i = 0; i < min; i++) start = this.compile(node, start)
    return start
  }
}

/** A set of places in the program before what follows them is known, and the kind of the character just passed. */
interface State {
  places: number[]
  before: number
  /** By class of the next character; undefined: not met yet. */
  next: (State | undefined)[]
}

const MATCHED: State = { places: [], before: 0, next: [] }
const START_OF_TEXT = 0
const AFTER_WORD = 1
const AFTER_NEWLINE = 2
const AFTER_OTHER = 3
const END_OF_TEXT = 0

export class Matcher {
  private readonly program: Instruction[]
  private readonly sets: CharSet[]
  private readonly start: number
  private states = new Map<string, State>()
  private classIds = new Map<string, number>()
  private readonly asciiClasses: Int32Array = new Int32Array(128).fill(-1)
  private readonly otherClasses = new Map<number, number>()
  /** One code point of each class, to test sets with. */
  private readonly samples: number[] = [-1]
  private first: State | undefined

  constructor(pattern: string) {
    const compiler = new Compiler(pattern)
    this.start = compiler.compile(parseRegexp(pattern), 0)
    this.program = compiler.program
    this.sets = compiler.sets
  }

  test(text: string): boolean {
    let state = (this.first ??= this.stateOf([this.start], START_OF_TEXT))
    for (let i = 0; i < text.length;) {
      let code = text.charCodeAt(i)
      let width = 1
      if (code >= 0xd800 && code < 0xdc00 && i + 1 < text.length) {
        code = text.codePointAt(i)!
        width = code > 0xffff ? 2 : 1
      }
      const cls = this.classOf(code)
      const next = state.next[cls] ?? this.advance(state, cls)
      if (next === MATCHED) return true
      state = next
      i += width
    }
    return (state.next[END_OF_TEXT] ?? this.advance(state, END_OF_TEXT)) === MATCHED
  }

  /** Characters that no set tells apart share a class; class 0 is the end of the text. */
  private classOf(code: number): number {
    const known = code < 128 ? this.asciiClasses[code]! : (this.otherClasses.get(code) ?? -1)
    if (known >= 0) return known
    let signature = isWord(code) ? 'w' : code === 10 ? 'n' : 'o'
    for (const set of this.sets) signature += inSet(set, code) ? '1' : '0'
    let id = this.classIds.get(signature)
    if (id === undefined) {
      id = this.samples.push(code) - 1
      this.classIds.set(signature, id)
    }
    if (code < 128) this.asciiClasses[code] = id
    else if (this.otherClasses.size < MAX_CACHED_STATES) this.otherClasses.set(code, id)
    return id
  }

  private stateOf(places: number[], before: number): State {
    const key = `${before}:${places.join(',')}`
    let state = this.states.get(key)
    if (state === undefined) {
      if (this.states.size >= MAX_CACHED_STATES) this.states = new Map()
      state = { places, before, next: [] }
      this.states.set(key, state)
    }
    return state
  }

  private advance(state: State, cls: number): State {
    const code = this.samples[cls]!
    const reached = new Set<number>()
    const pending = [...state.places]
    let isMatched = false
    while (pending.length > 0) {
      const place = pending.pop()!
      if (reached.has(place)) continue
      reached.add(place)
      const instruction = this.program[place]!
      if (instruction.op === 'match') isMatched = true
      else if (instruction.op === 'split') pending.push(instruction.a, instruction.b)
      else if (instruction.op === 'assert' && holds(instruction.what, state.before, code))
        pending.push(instruction.next)
    }
    let next = MATCHED
    if (!isMatched) {
      const places = new Set<number>([this.start])
      for (const place of reached) {
        const instruction = this.program[place]!
        if (code >= 0 && instruction.op === 'set' && inSet(this.sets[instruction.set]!, code))
          places.add(instruction.next)
      }
      const before = isWord(code) ? AFTER_WORD : code === 10 ? AFTER_NEWLINE : AFTER_OTHER
      next = this.stateOf(
        [...places].toSorted((a, b) => a - b),
        before,
      )
    }
    state.next[cls] = next
    return next
  }
}

function isWord(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95
}

function holds(what: Assertion, before: number, code: number): boolean {
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

const matchers = new Map<string, Matcher | RegexpSyntaxError>()
const MAX_CACHED_PATTERNS = 1_000

/** The matcher of a pattern, or why there is none. Cached: schemas repeat patterns, CEL rules match in loops. */
export function findMatcher(pattern: string): Matcher | RegexpSyntaxError {
  let matcher = matchers.get(pattern)
  if (matcher === undefined) {
    try {
      matcher = new Matcher(pattern)
    } catch (error) {
      if (!(error instanceof RegexpSyntaxError)) throw error
      matcher = error
    }
    if (matchers.size >= MAX_CACHED_PATTERNS) matchers.clear()
    matchers.set(pattern, matcher)
  }
  return matcher
}
