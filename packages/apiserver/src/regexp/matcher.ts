/**
 * Linear-time matching of RE2 patterns: the pattern becomes a nondeterministic automaton, whose sets of states are made
 * deterministic lazily.
 *
 * Guarantees: time is at most text length × program size for any pattern; memory is bounded (the cache of states is
 * cleared when full, programs have a size limit). `test` returns whether the pattern matches anywhere, `find` returns
 * the matches.
 */
import { inSet } from './char-class.ts'
import { RegexpSyntaxError } from './escape.ts'
import { findMatches, type Pay, type Span } from './finder.ts'
import { compileRegexp, holds, isWord, kindBefore, type Program, START_OF_TEXT } from './program.ts'

const MAX_CACHED_STATES = 2_000

/**
 * A state of the lazy DFA: a set of program counters before following empty transitions, and the kind of the previous
 * character.
 */
interface State {
  counters: number[]
  before: number
  /** By class of the next character; undefined: not computed yet. */
  next: (State | undefined)[]
}

const MATCHED: State = { counters: [], before: 0, next: [] }
const END_OF_TEXT = 0

export class Matcher {
  readonly #program: Program
  #states = new Map<string, State>()
  #classIds = new Map<string, number>()
  readonly #asciiClasses: Int32Array = new Int32Array(128).fill(-1)
  readonly #otherClasses = new Map<number, number>()
  /** One code point of each class, to test sets with. */
  readonly #samples: number[] = [-1]
  #first: State | undefined

  constructor(pattern: string) {
    this.#program = compileRegexp(pattern)
  }

  /** `pay` is called for work that is not cached; when it returns false the result is false. */
  test(text: string, pay?: Pay): boolean {
    let state = (this.#first ??= this.#stateOf([this.#program.start], START_OF_TEXT))
    for (let i = 0; i < text.length;) {
      let code = text.charCodeAt(i)
      let width = 1
      if (code >= 0xd800 && code < 0xdc00 && i + 1 < text.length) {
        code = text.codePointAt(i)!
        width = code > 0xffff ? 2 : 1
      }
      const cls = this.#classOf(code)
      let next = state.next[cls]
      if (next === undefined) {
        if (pay?.(1 + state.counters.length) === false) return false
        next = this.#advance(state, cls)
      }
      if (next === MATCHED) return true
      state = next
      i += width
    }
    return (state.next[END_OF_TEXT] ?? this.#advance(state, END_OF_TEXT)) === MATCHED
  }

  /** The non-overlapping matches, leftmost first. */
  find(text: string, pay: Pay = () => true): Generator<Span> {
    return findMatches(this.#program, text, pay)
  }

  /** Characters that no set distinguishes share a class; class 0 is the end of the text. */
  #classOf(code: number): number {
    const known = code < 128 ? this.#asciiClasses[code]! : (this.#otherClasses.get(code) ?? -1)
    if (known >= 0) return known
    let signature = isWord(code) ? 'w' : code === 10 ? 'n' : 'o'
    for (const set of this.#program.sets) signature += inSet(set, code) ? '1' : '0'
    let id = this.#classIds.get(signature)
    if (id === undefined) {
      id = this.#samples.push(code) - 1
      this.#classIds.set(signature, id)
    }
    if (code < 128) this.#asciiClasses[code] = id
    else if (this.#otherClasses.size < MAX_CACHED_STATES) this.#otherClasses.set(code, id)
    return id
  }

  #stateOf(counters: number[], before: number): State {
    const key = `${before}:${counters.join(',')}`
    let state = this.#states.get(key)
    if (state === undefined) {
      if (this.#states.size >= MAX_CACHED_STATES) this.#states = new Map()
      state = { counters, before, next: [] }
      this.#states.set(key, state)
    }
    return state
  }

  #advance(state: State, cls: number): State {
    const code = this.#samples[cls]!
    const reached = new Set<number>()
    const pending = [...state.counters]
    let isMatched = false
    while (pending.length > 0) {
      const pc = pending.pop()!
      if (reached.has(pc)) continue
      reached.add(pc)
      const instruction = this.#program.instructions[pc]!
      if (instruction.op === 'match') isMatched = true
      else if (instruction.op === 'split') pending.push(instruction.a, instruction.b)
      else if (instruction.op === 'assert' && holds(instruction.what, state.before, code))
        pending.push(instruction.next)
    }
    let next = MATCHED
    if (!isMatched) {
      const counters = new Set<number>([this.#program.start])
      for (const pc of reached) {
        const instruction = this.#program.instructions[pc]!
        if (code >= 0 && instruction.op === 'set' && inSet(this.#program.sets[instruction.set]!, code))
          counters.add(instruction.next)
      }
      next = this.#stateOf(
        [...counters].toSorted((a, b) => a - b),
        kindBefore(code),
      )
    }
    state.next[cls] = next
    return next
  }
}

const matchers = new Map<string, Matcher | RegexpSyntaxError>()
const MAX_CACHED_PATTERNS = 1_000

/** The matcher of a pattern, or its syntax error. Cached: schemas repeat patterns, CEL rules match in loops. */
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
