/**
 * Matching of whole texts, as RE2's FullMatch, at the cost of a budget. A matcher keeps its pattern only: the program and the
 * automaton are made when a text is matched, and belong to the memory that all automata share.
 */
import { automatonOf, FAILED } from './automaton.ts'
import { compileRegexp } from './program.ts'

/** The budget of steps was used up: whether the text matches is not known. */
export class StepsExceeded extends Error {
  readonly code = 'REGEXP_STEPS'

  constructor() {
    super('a regular expression takes more steps than are allowed')
    this.name = 'StepsExceeded'
  }
}

/** A step takes about as long as reading one character with an automaton that is built, some nanoseconds. */
export class Steps {
  #left: number

  constructor(count: number) {
    this.#left = count
  }

  get left(): number {
    return this.#left
  }

  /** Throws StepsExceeded when fewer are left. */
  take(count: number): void {
    this.#left -= count
    if (this.#left < 0) throw new StepsExceeded()
  }
}

/** Steps for a character of a pattern that is parsed, an instruction that is compiled, and one that is visited. */
const PARSE_STEPS = 5
const COMPILE_STEPS = 10
const VISIT_STEPS = 40

export class FullMatcher {
  readonly #pattern: string

  /** @param pattern that `measureRegexp` accepts */
  constructor(pattern: string) {
    this.#pattern = pattern
  }

  /** Throws StepsExceeded. */
  test(text: string, steps: Steps): boolean {
    const automaton = automatonOf(this, true, () => {
      steps.take(this.#pattern.length * PARSE_STEPS)
      const program = compileRegexp(this.#pattern)
      steps.take(program.instructions.length * COMPILE_STEPS)
      return program
    })
    let state = automaton.first
    let at = 0
    while (at < text.length && state !== FAILED) {
      const code = text.codePointAt(at)!
      at += code > 0xffff ? 2 : 1
      const known = automaton.peek(state, code)
      if (known !== undefined) {
        state = known
        continue
      }
      const before = automaton.work
      state = automaton.step(state, code)
      steps.take((automaton.work - before) * VISIT_STEPS)
    }
    steps.take(at)
    return state !== FAILED && automaton.isMatchAtEnd(state)
  }
}
