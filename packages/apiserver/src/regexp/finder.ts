/**
 * Where a pattern matches, by RE2's leftmost-first rule: all ways through the program run side by side, in the order of
 * preference, and the first of them to reach the end cuts off those behind it.
 *
 * Guarantee: one search takes at most text length × program size.
 */
import { inSet } from './char-class.ts'
import { holds, kindBefore, type Program, START_OF_TEXT } from './program.ts'

export interface Span {
  readonly start: number
  /** Just behind the last character. */
  readonly end: number
}

/** Called with the number of places that are looked at next; false ends the search without a result. */
export type Pay = (places: number) => boolean

/** One way through the program: where it is, and where in the text it began. */
interface Way {
  readonly place: number
  readonly start: number
}

/** The matches that do not overlap, each searched when it is asked for. As in Go, an empty one right behind another is none. */
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
  let ways: Way[] = []
  let found: Span | undefined
  for (let at = from; ; at += widthAt(text, at)) {
    const code = at < text.length ? text.codePointAt(at)! : -1
    const before = at === 0 ? START_OF_TEXT : kindBefore(text.charCodeAt(at - 1))
    if (found === undefined) ways.push({ place: program.start, start: at })
    if (!pay(1 + ways.length)) return undefined
    const next: Way[] = []
    for (const { place, start } of reach(program, ways, before, code)) {
      const instruction = program.instructions[place]!
      if (instruction.op === 'match') {
        found = { start, end: at }
        break
      }
      if (instruction.op === 'set' && code >= 0 && inSet(program.sets[instruction.set]!, code))
        next.push({ place: instruction.next, start })
    }
    if (code < 0 || (next.length === 0 && found !== undefined)) return found
    ways = next
  }
}

/** Every place that `ways` reach without a character, best first; of two ways to one place the better one counts. */
function* reach(program: Program, ways: readonly Way[], before: number, code: number): Generator<Way> {
  const seen = new Set<number>()
  const pending = ways.toReversed()
  for (let way = pending.pop(); way !== undefined; way = pending.pop()) {
    const { place, start } = way
    if (seen.has(place)) continue
    seen.add(place)
    const instruction = program.instructions[place]!
    if (instruction.op === 'split') pending.push({ place: instruction.b, start }, { place: instruction.a, start })
    else if (instruction.op !== 'assert') yield way
    else if (holds(instruction.what, before, code)) pending.push({ place: instruction.next, start })
  }
}

function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
}
