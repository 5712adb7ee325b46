/**
 * The deterministic automaton of a program, built as texts visit it: each of its states is a set of states of the program.
 *
 * Guarantees: a state is built in time proportional to the program, and reading it again takes one look-up per character. The
 * memory of all automata of the process together is bounded: when it is full, all are dropped and built anew as they are used.
 */
import { inSet } from './char-class.ts'
import { holds, isWord, kindBefore, type Program, START_OF_TEXT } from './program.ts'

/** A set of program counters before following empty transitions, and the kind of the previous character. */
export interface State {
  readonly counters: readonly number[]
  readonly before: number
  /** By class of the next character; undefined: not computed yet. */
  readonly next: (State | undefined)[]
}

/** The text matches, whatever follows. */
export const MATCHED: State = { counters: [], before: 0, next: [] }
/** No text that begins so matches. */
export const FAILED: State = { counters: [], before: 0, next: [] }
/** The class of the end of the text. */
const END_OF_TEXT = 0

/** Of all automata, in numbers of 8 octets: 32 MiB. */
const MAX_UNITS = 4 * 2 ** 20
/** Of an automaton and of a state by themselves. */
const AUTOMATON_UNITS = 150
const STATE_UNITS = 40
const INSTRUCTION_UNITS = 8
/** Characters beyond ASCII whose class is known. */
const MAX_OTHER_CLASSES = 1_000

let automata = new WeakMap<object, Automaton>()
let units = 0

/** The automaton of `owner`, made by `compile` when it has none. */
export function automatonOf(owner: object, isWhole: boolean, compile: () => Program): Automaton {
  let automaton = automata.get(owner)
  if (automaton === undefined) {
    automaton = new Automaton(compile(), isWhole)
    automata.set(owner, automaton)
  }
  return automaton
}

/** @returns false when all automata were dropped */
function takeUnits(count: number): boolean {
  units += count
  if (units <= MAX_UNITS) return true
  automata = new WeakMap()
  units = count
  return false
}

export class Automaton {
  readonly #program: Program
  /** The text is matched as a whole; else any part of it. */
  readonly #isWhole: boolean
  #states = new Map<string, State>()
  readonly #classIds = new Map<string, number>()
  readonly #asciiClasses = new Int16Array(128).fill(-1)
  readonly #otherClasses = new Map<number, number>()
  /** One code point of each class, to test sets with. */
  readonly #samples: number[] = [-1]
  #first: State | undefined
  /** Instructions that were visited for what was not known yet. */
  work = 0

  constructor(program: Program, isWhole: boolean) {
    this.#program = program
    this.#isWhole = isWhole
    takeUnits(AUTOMATON_UNITS + program.instructions.length * INSTRUCTION_UNITS)
  }

  get first(): State {
    return (this.#first ??= this.#stateOf([this.#program.start], START_OF_TEXT))
  }

  /** The state after a character, if it is known. */
  peek(state: State, code: number): State | undefined {
    return state.next[this.#classOf(code)]
  }

  /** The state after a character. */
  step(state: State, code: number): State {
    return this.#advance(state, this.#classOf(code))
  }

  isMatchAtEnd(state: State): boolean {
    return (state.next[END_OF_TEXT] ?? this.#advance(state, END_OF_TEXT)) === MATCHED
  }

  /** Characters that no set distinguishes share a class; class 0 is the end of the text. */
  #classOf(code: number): number {
    const known = code < 128 ? this.#asciiClasses[code]! : (this.#otherClasses.get(code) ?? -1)
    return known >= 0 ? known : this.#newClassOf(code)
  }

  #newClassOf(code: number): number {
    const { sets } = this.#program
    this.work += sets.length
    let signature = isWord(code) ? 'w' : code === 10 ? 'n' : 'o'
    for (const set of sets) signature += inSet(set, code) ? '1' : '0'
    let id = this.#classIds.get(signature)
    if (id === undefined) {
      takeUnits(signature.length)
      id = this.#samples.push(code) - 1
      this.#classIds.set(signature, id)
    }
    if (code < 128) this.#asciiClasses[code] = id
    else if (this.#otherClasses.size < MAX_OTHER_CLASSES) {
      takeUnits(4)
      this.#otherClasses.set(code, id)
    }
    return id
  }

  #stateOf(counters: readonly number[], before: number): State {
    const key = `${before}:${counters.join(',')}`
    let state = this.#states.get(key)
    if (state === undefined) {
      state = { counters, before, next: [] }
      // Also of the automaton that is running, which the others do not keep any more.
      if (!takeUnits(STATE_UNITS + 2 * counters.length)) {
        this.#states = new Map()
        this.#first = undefined
      }
      this.#states.set(key, state)
    }
    return state
  }

  #advance(state: State, cls: number): State {
    const { instructions, sets, start } = this.#program
    const code = this.#samples[cls]!
    const reached = new Set<number>()
    const pending = [...state.counters]
    let isMatched = false
    while (pending.length > 0) {
      const pc = pending.pop()!
      if (reached.has(pc)) continue
      reached.add(pc)
      const instruction = instructions[pc]!
      if (instruction.op === 'match') isMatched = true
      else if (instruction.op === 'split') pending.push(instruction.a, instruction.b)
      else if (instruction.op === 'assert' && holds(instruction.what, state.before, code))
        pending.push(instruction.next)
    }
    this.work += reached.size
    let next = MATCHED
    if (!isMatched || (this.#isWhole && code >= 0)) {
      const counters = new Set<number>(this.#isWhole ? [] : [start])
      if (code >= 0)
        for (const pc of reached) {
          const instruction = instructions[pc]!
          if (instruction.op === 'set' && inSet(sets[instruction.set]!, code)) counters.add(instruction.next)
        }
      next =
        counters.size === 0
          ? FAILED
          : this.#stateOf(
              [...counters].toSorted((a, b) => a - b),
              kindBefore(code),
            )
    }
    state.next[cls] = next
    return next
  }
}
