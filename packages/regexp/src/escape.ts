/** Escapes of RE2 syntax that denote one character, and the syntax error of all parsers in this folder. */

/** Formatted as in Go: `error parsing regexp: missing closing ]: …`. */
export class RegexpSyntaxError extends Error {
  readonly code = 'REGEXP_SYNTAX'

  constructor(what: string, where: string) {
    super(`error parsing regexp: ${what}: \`${where}\``)
    this.name = 'RegexpSyntaxError'
  }
}

const CONTROLS: ReadonlyMap<string, number> = new Map([
  ['a', 7],
  ['f', 12],
  ['n', 10],
  ['r', 13],
  ['t', 9],
  ['v', 11],
])

/** An escape that denotes one character; `at` is the index of the backslash. */
export function parseEscape(chars: readonly string[], at: number): { code: number; length: number } {
  const text = chars.slice(at, at + 14).join('')
  const next = chars[at + 1]
  const control = next === undefined ? undefined : CONTROLS.get(next)
  if (control !== undefined) return { code: control, length: 2 }
  const hex = /^\\x(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2}))/.exec(text)
  if (hex !== null) {
    const code = Number.parseInt(hex[1] ?? hex[2]!, 16)
    if (code <= 0x10ffff) return { code, length: hex[0].length }
    throw new RegexpSyntaxError('invalid escape sequence', hex[0].slice(0, -1))
  }
  const octal = /^\\(0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(text)
  if (octal !== null) return { code: Number.parseInt(octal[1]!, 8), length: octal[0].length }
  if (next !== undefined && /^[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e ]$/.test(next))
    return { code: next.charCodeAt(0), length: 2 }
  throw new RegexpSyntaxError('invalid escape sequence', `\\${next ?? ''}`)
}
