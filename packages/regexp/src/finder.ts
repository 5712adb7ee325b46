/**
 * Finds the matches of a pattern by RE2's leftmost-first rule: all threads of the program run in lockstep, ordered by
 * priority; the first thread that reaches `match` discards those of lower priority.
 *
 * Guarantee: one search takes at most text length × program size.
 */
import { inSet } from './char-class.ts'
import { holds, kindBefore, type Program, START_OF_TEXT } from './program.ts'

export interface Span {
  readonly start: number
  /** Index after the last character. */
  readonly end: number
}

/** Called with the number of instructions that are evaluated next; false ends the search without a result. */
export type Pay = (instructions: number) => boolean

/** One thread: its program counter, and the start of its match in the text. */
interface Thread {
  readonly pc: number
  readonly start: number
}

/** The non-overlapping matches, searched lazily. As in Go, an empty match directly after another one is skipped. */
export function* findMatches(program: Program, text: string, pay: Pay): Generator<Span> {
  let from = 0
  let lastEnd = -1
  while (from <= text.length) {
    const span = findFirst(program, text, from, pay)
    if (span === undefined) return
    const isEmpty = span.start === span.end
    if (!isEmpty || span.end !== lastEnd) yield span
    lastEnd = span.end
    from = isEmpty ? span.end + widthAt(text, span.end) : span.end
  }
}

function findFirst(program: Program, text: string, from: number, pay: Pay): Span | undefined {
  let threads: Thread[] = []
  let found: Span | undefined
  for (let at = from; ; at += widthAt(text, at)) {
    const code = at < text.length ? text.codePointAt(at)! : -1
    const before = at === 0 ? START_OF_TEXT : kindBefore(text.charCodeAt(at - 1))
    if (found === undefined) threads.push({ pc: program.start, start: at })
    if (!pay(1 + threads.length)) return undefined
    const next: Thread[] = []
    for (const { pc, start } of reach(program, threads, before, code)) {
      const instruction = program.instructions[pc]!
      if (instruction.op === 'match') {
        found = { start, end: at }
        break
      }
      if (instruction.op === 'set' && code >= 0 && inSet(program.sets[instruction.set]!, code))
        next.push({ pc: instruction.next, start })
    }
    if (code < 0 || (next.length === 0 && found !== undefined)) return found
    threads = next
  }
}

/**
 * Every thread that `threads` reach without consuming a character, by priority; of two threads at one instruction the
 * first one is kept.
 */
function* reach(program: Program, threads: readonly Thread[], before: number, code: number): Generator<Thread> {
  const seen = new Set<number>()
  const pending = threads.toReversed()
  for (let thread = pending.pop(); thread !== undefined; thread = pending.pop()) {
    const { pc, start } = thread
    if (seen.has(pc)) continue
    seen.add(pc)
    const instruction = program.instructions[pc]!
    if (instruction.op === 'split') pending.push({ pc: instruction.b, start }, { pc: instruction.a, start })
    else if (instruction.op !== 'assert') yield thread
    else if (holds(instruction.what, before, code)) pending.push({ pc: instruction.next, start })
  }
}

function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
}
