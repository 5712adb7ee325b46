/**
 * Linear-time matching of RE2 patterns anywhere in a text.
 *
 * Guarantees: time is at most text length × program size for any pattern; memory is bounded (automaton.ts, and programs have a
 * size limit). `test` returns whether the pattern matches anywhere, `find` returns the matches.
 */
import { automatonOf, FAILED, MATCHED } from './automaton.ts'
import { RegexpSyntaxError } from './escape.ts'
import { findMatches, type Pay, type Span } from './finder.ts'
import { compileRegexp, type Program } from './program.ts'

export class Matcher {
  readonly #program: Program

  constructor(pattern: string) {
    this.#program = compileRegexp(pattern)
  }

  /** `pay` is called for work that is not cached; when it returns false the result is false. */
  test(text: string, pay?: Pay): boolean {
    const automaton = automatonOf(this, false, () => this.#program)
    let state = automaton.first
    for (let i = 0; i < text.length;) {
      const code = text.codePointAt(i)!
      let next = automaton.peek(state, code)
      if (next === undefined) {
        if (pay?.(1 + state.counters.length) === false) return false
        next = automaton.step(state, code)
      }
      if (next === MATCHED) return true
      if (next === FAILED) return false
      state = next
      i += code > 0xffff ? 2 : 1
    }
    return automaton.isMatchAtEnd(state)
  }

  /** The non-overlapping matches, leftmost first. */
  find(text: string, pay: Pay = () => true): Generator<Span> {
    return findMatches(this.#program, text, pay)
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
