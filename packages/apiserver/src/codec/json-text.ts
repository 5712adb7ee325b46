/**
 * Information that JSON.parse does not provide: where and why a text is not JSON, with the messages of Go's decoder,
 * and duplicate object members.
 *
 * Runs only on text that JSON.parse rejected, or that contains more members than its parsed value; both are rare, so
 * the code favours clarity over speed. `hasDuplicateFields` is the fast test.
 */
import { isRecord } from './object-shape.ts'

class GoSyntaxError extends Error {}

const quoteCharacter = (character: string): string =>
  character === "'" ? "'\\''" : character === '"' ? `'"'` : `'${goEscape(character)}'`

/** Control characters are escaped, as by Go's %q. */
function goEscape(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20 || character === '\\') return JSON.stringify(character).slice(1, -1)
  return code >= 0x7f && code < 0xa0 ? `\\u${code.toString(16).padStart(4, '0')}` : character
}

/** Scans JSON text as Go's scanner does. */
class Scanner {
  readonly #text: string
  readonly duplicates: string[] = []
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  run(): void {
    this.#value('', 'looking for beginning of value')
    this.#space()
    if (this.#at < this.#text.length) throw this.#unexpected('after top-level value')
  }

  #space(): void {
    while (this.#at < this.#text.length && ' \t\r\n'.includes(this.#text[this.#at] as string)) this.#at += 1
  }

  #unexpected(context: string): GoSyntaxError {
    const character = this.#text[this.#at]
    return new GoSyntaxError(
      character === undefined
        ? 'unexpected end of JSON input'
        : `invalid character ${quoteCharacter(character)} ${context}`,
    )
  }

  #value(path: string, context: string): void {
    this.#space()
    const character = this.#text[this.#at]
    if (character === '{') this.#object(path)
    else if (character === '[') this.#array(path)
    else if (character === '"') this.#string()
    else if (character === '-' || (character !== undefined && character >= '0' && character <= '9')) this.#number()
    else if (character === 't') this.#literal('true')
    else if (character === 'f') this.#literal('false')
    else if (character === 'n') this.#literal('null')
    else throw this.#unexpected(context)
  }

  #object(path: string): void {
    const seen = new Set<string>()
    this.#at += 1
    this.#space()
    if (this.#text[this.#at] === '}') {
      this.#at += 1
      return
    }
    for (;;) {
      this.#space()
      if (this.#text[this.#at] !== '"') throw this.#unexpected('looking for beginning of object key string')
      const key = this.#string()
      const here = path === '' ? key : `${path}.${key}`
      if (seen.has(key)) this.duplicates.push(here)
      seen.add(key)
      this.#space()
      if (this.#text[this.#at] !== ':') throw this.#unexpected('after object key')
      this.#at += 1
      this.#value(here, 'looking for beginning of value')
      this.#space()
      const next = this.#text[this.#at]
      if (next !== ',' && next !== '}') throw this.#unexpected('after object key:value pair')
      this.#at += 1
      if (next === '}') return
    }
  }

  #array(path: string): void {
    this.#at += 1
    this.#space()
    if (this.#text[this.#at] === ']') {
      this.#at += 1
      return
    }
    for (let index = 0; ; index += 1) {
      this.#value(`${path}[${index}]`, 'looking for beginning of value')
      this.#space()
      const next = this.#text[this.#at]
      if (next !== ',' && next !== ']') throw this.#unexpected('after array element')
      this.#at += 1
      if (next === ']') return
    }
  }

  #string(): string {
    const start = this.#at
    for (this.#at += 1; ; this.#at += 1) {
      const character = this.#text[this.#at]
      if (character === undefined) throw this.#unexpected('')
      if (character < ' ') throw this.#unexpected('in string literal')
      if (character === '"') break
      if (character !== '\\') continue
      this.#at += 1
      if (this.#text[this.#at] === 'u') {
        for (let digits = 0; digits < 4; digits += 1) {
          this.#at += 1
          if (!/[0-9a-fA-F]/.test(this.#text[this.#at] ?? ''))
            throw this.#unexpected('in \\u hexadecimal character escape')
        }
      } else if (!'"\\/bfnrt'.includes(this.#text[this.#at] ?? '~')) throw this.#unexpected('in string escape code')
    }
    this.#at += 1
    return JSON.parse(this.#text.slice(start, this.#at)) as string
  }

  #number(): void {
    if (this.#text[this.#at] === '-') this.#at += 1
    if (this.#text[this.#at] === '0') this.#at += 1
    else this.#digits('in numeric literal')
    if (this.#text[this.#at] === '.') {
      this.#at += 1
      this.#digits('after decimal point in numeric literal')
    }
    if (/[eE]/.test(this.#text[this.#at] ?? '')) {
      this.#at += 1
      if (/[+-]/.test(this.#text[this.#at] ?? '')) this.#at += 1
      this.#digits('in exponent of numeric literal')
    }
  }

  #digits(context: string): void {
    if (!/\d/.test(this.#text[this.#at] ?? '')) throw this.#unexpected(context)
    while (/\d/.test(this.#text[this.#at] ?? '')) this.#at += 1
  }

  #literal(word: string): void {
    for (let index = 0; index < word.length; index += 1, this.#at += 1) {
      if (this.#text[this.#at] !== word[index]) {
        throw this.#unexpected(`in literal ${word} (expecting ${quoteCharacter(word[index] as string)})`)
      }
    }
  }
}

/** Why a text is not JSON, as Go's decoder reports it. Undefined when it is JSON. */
export function explainSyntaxError(text: string): string | undefined {
  try {
    new Scanner(text).run()
    return undefined
  } catch (error) {
    if (error instanceof GoSyntaxError) return error.message
    if (error instanceof RangeError) return 'exceeded max depth'
    throw error
  }
}

/** Paths of members that occur twice in one object. */
export function findDuplicateFields(text: string): string[] {
  const scanner = new Scanner(text)
  scanner.run()
  return scanner.duplicates
}

/** Number of members in the text: its colons outside strings. */
function countMembersInText(text: string): number {
  let count = 0
  let isString = false
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (isString) {
      if (code === 92) at += 1
      else if (code === 34) isString = false
    } else if (code === 34) isString = true
    else if (code === 58) count += 1
  }
  return count
}

function countMembers(value: unknown): number {
  let count = 0
  if (Array.isArray(value)) for (const item of value) count += countMembers(item)
  else if (isRecord(value)) for (const key of Object.keys(value)) count += 1 + countMembers(value[key])
  return count
}

export function hasDuplicateFields(text: string, parsed: unknown): boolean {
  return countMembersInText(text) !== countMembers(parsed)
}

/** The bracket that opens one level more than `limit`, or undefined. Linear, without recursion. */
export function findTooDeep(text: string, limit: number): string | undefined {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '"') at = endOfString(text, at)
    else if (char === '{' || char === '[') {
      if (++depth > limit) return char
    } else if (char === '}' || char === ']') depth--
  }
  return undefined
}

/**
 * A number literal that JSON.parse reads as infinite, or undefined. Only a large exponent or a very long literal can be
 * infinite.
 */
export function findHugeNumber(text: string): string | undefined {
  // The lookbehind prevents a repeated search from each digit of a run.
  if (!/\d[eE]\+?\d{3}|(?<!\d)\d{309}/.test(text)) return undefined
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') {
      at = endOfString(text, at)
      continue
    }
    const number = /[-\d][\d.eE+-]*/y
    number.lastIndex = at
    const found = number.exec(text)?.[0]
    if (found === undefined) continue
    if (!Number.isFinite(Number(found))) return found
    at += found.length - 1
  }
  return undefined
}

/** Index of the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at
}
