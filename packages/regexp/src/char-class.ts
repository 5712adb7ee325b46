/** Character classes of RE2 syntax: ranges of code points, Unicode properties, negation, case folding. */
import { RegexpSyntaxError, parseEscape } from './escape.ts'

export interface CharSet {
  ranges: [number, number][]
  classes: { pattern: RegExp; isNegated: boolean }[]
  isNegated: boolean
  foldsCase: boolean
}

const DIGIT: [number, number][] = [[48, 57]]
const WORD: [number, number][] = [
  [48, 57],
  [65, 90],
  [95, 95],
  [97, 122],
]
const SPACE: [number, number][] = [
  [9, 10],
  [12, 13],
  [32, 32],
]

const POSIX: ReadonlyMap<string, [number, number][]> = new Map<string, [number, number][]>([
  [
    'alnum',
    [
      [48, 57],
      [65, 90],
      [97, 122],
    ],
  ],
  [
    'alpha',
    [
      [65, 90],
      [97, 122],
    ],
  ],
  ['ascii', [[0, 127]]],
  [
    'blank',
    [
      [9, 9],
      [32, 32],
    ],
  ],
  [
    'cntrl',
    [
      [0, 31],
      [127, 127],
    ],
  ],
  ['digit', DIGIT],
  ['graph', [[33, 126]]],
  ['lower', [[97, 122]]],
  ['print', [[32, 126]]],
  [
    'punct',
    [
      [33, 47],
      [58, 64],
      [91, 96],
      [123, 126],
    ],
  ],
  [
    'space',
    [
      [9, 13],
      [32, 32],
    ],
  ],
  ['upper', [[65, 90]]],
  ['word', WORD],
  [
    'xdigit',
    [
      [48, 57],
      [65, 70],
      [97, 102],
    ],
  ],
])

function complement(ranges: readonly [number, number][]): [number, number][] {
  const result: [number, number][] = []
  let next = 0
  for (const [low, high] of [...ranges].toSorted(([a], [b]) => a - b)) {
    if (low > next) result.push([next, low - 1])
    next = Math.max(next, high + 1)
  }
  if (next <= 0x10ffff) result.push([next, 0x10ffff])
  return result
}

function perlRanges(letter: string): [number, number][] | undefined {
  switch (letter) {
    case 'd':
      return DIGIT
    case 'D':
      return complement(DIGIT)
    case 's':
      return SPACE
    case 'S':
      return complement(SPACE)
    case 'w':
      return WORD
    case 'W':
      return complement(WORD)
    default:
      return undefined
  }
}

/** `\d`, `\w`, `\s` and their negations; undefined for any other letter. */
export function perlClass(letter: string, foldsCase: boolean): CharSet | undefined {
  const ranges = perlRanges(letter)
  return ranges && { ranges, classes: [], isNegated: false, foldsCase }
}

/** `\pL`, `\p{Greek}`, `\P{^Lu}`; `at` is the backslash. */
export function unicodeClass(
  chars: readonly string[],
  at: number,
  foldsCase: boolean,
): { set: CharSet; length: number } {
  const match = /^\\([pP])(?:\{(\^?)(\w+)\}|(\w))/.exec(chars.slice(at, at + 40).join(''))
  if (match === null) throw new RegexpSyntaxError('invalid character class range', chars.slice(at, at + 2).join(''))
  const name = match[3] ?? match[4]!
  const pattern = name === 'Any' ? /[^]/u : findProperty(name)
  if (pattern === undefined) throw new RegexpSyntaxError('invalid character class range', match[0])
  const isNegated = (match[1] === 'P') !== (match[2] === '^')
  return {
    set: { ranges: [], classes: [{ pattern, isNegated }], isNegated: false, foldsCase },
    length: match[0].length,
  }
}

function findProperty(name: string): RegExp | undefined {
  for (const property of [`General_Category=${name}`, `Script=${name}`]) {
    try {
      return new RegExp(`^\\p{${property}}$`, 'u')
    } catch {
      continue
    }
  }
  return undefined
}

/** `[...]` at `at`. */
export function parseClass(chars: readonly string[], at: number, foldsCase: boolean): { set: CharSet; length: number } {
  const set: CharSet = { ranges: [], classes: [], isNegated: false, foldsCase }
  let i = at + 1
  if (chars[i] === '^') {
    set.isNegated = true
    i++
  }
  for (let isFirst = true; isFirst || chars[i] !== ']'; isFirst = false) {
    if (i >= chars.length) throw new RegexpSyntaxError('missing closing ]', chars.slice(at).join(''))
    i += addItem(set, chars, i)
  }
  return { set, length: i + 1 - at }
}

/** One item of a class: named class, escape class, character or range. Returns its length. */
function addItem(set: CharSet, chars: readonly string[], at: number): number {
  if (chars[at] === '[' && chars[at + 1] === ':') {
    const match = /^\[:(\^?)(\w+):\]/.exec(chars.slice(at, at + 20).join(''))
    const ranges = match === null ? undefined : POSIX.get(match[2]!)
    if (match !== null && ranges !== undefined) {
      set.ranges.push(...(match[1] === '^' ? complement(ranges) : ranges))
      return match[0].length
    }
    if (match !== null) throw new RegexpSyntaxError('invalid character class range', match[0])
  }
  if (chars[at] === '\\') {
    const ranges = perlRanges(chars[at + 1] ?? '')
    if (ranges !== undefined) {
      set.ranges.push(...ranges)
      return 2
    }
    if (chars[at + 1] === 'p' || chars[at + 1] === 'P') {
      const unicode = unicodeClass(chars, at, false)
      set.classes.push(...unicode.set.classes)
      return unicode.length
    }
  }
  const low = classChar(chars, at)
  const dash = at + low.length
  if (chars[dash] !== '-' || chars[dash + 1] === ']' || chars[dash + 1] === undefined) {
    set.ranges.push([low.code, low.code])
    return low.length
  }
  const high = classChar(chars, dash + 1)
  if (high.code < low.code) {
    throw new RegexpSyntaxError('invalid character class range', chars.slice(at, dash + 1 + high.length).join(''))
  }
  set.ranges.push([low.code, high.code])
  return low.length + 1 + high.length
}

function classChar(chars: readonly string[], at: number): { code: number; length: number } {
  const char = chars[at]
  if (char === undefined) throw new RegexpSyntaxError('missing closing ]', chars.join(''))
  return char === '\\' ? parseEscape(chars, at) : { code: char.codePointAt(0)!, length: 1 }
}

export function inSet(set: CharSet, code: number): boolean {
  if (!set.foldsCase) return contains(set, code) !== set.isNegated
  const char = String.fromCodePoint(code)
  const lower = char.toLowerCase().codePointAt(0)!
  const upper = char.toUpperCase().codePointAt(0)!
  // The letters of one case may be several: of the two small sigmas only one is the small letter of the capital one.
  const small = String.fromCodePoint(upper).toLowerCase().codePointAt(0)!
  return [code, lower, upper, small].some((each) => contains(set, each)) !== set.isNegated
}

function contains(set: CharSet, code: number): boolean {
  for (const [low, high] of set.ranges) if (code >= low && code <= high) return true
  if (set.classes.length === 0) return false
  const char = String.fromCodePoint(code)
  return set.classes.some(({ pattern, isNegated }) => pattern.test(char) !== isNegated)
}
