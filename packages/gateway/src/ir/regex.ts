/**
 * Regular expressions of users, compiled and matched by RE2: linear time, so that neither a pattern of one tenant nor a
 * request can stall the process, and the same syntax as Envoy. Compiled patterns are kept, because the library never frees
 * their memory.
 */
import { RE2 } from 're2-wasm'

/** A pattern that RE2 refuses. */
class InvalidRegex extends Error {}

interface Compiled {
  test(text: string): boolean
}

/** Beyond it new patterns are refused instead of filling the memory of the library. */
const MAX_PATTERNS = 10_000
/** Patterns of megabytes are no path or header conditions; the schema of HTTPProxy has no limit of its own. */
const MAX_LENGTH = 4_096

const compiled = new Map<string, Compiled | InvalidRegex>()

/** Why the pattern cannot be used; undefined if it can. */
export function regexFault(pattern: string): string | undefined {
  const result = compile(pattern)
  return result instanceof InvalidRegex ? result.message : undefined
}

/** Matches the whole text, as Envoy does. Throws on a pattern that `regexFault` refuses. */
export function fullMatcher(pattern: string): (text: string) => boolean {
  const result = compile(pattern)
  if (result instanceof InvalidRegex) throw result
  return (text) => result.test(text)
}

function compile(pattern: string): Compiled | InvalidRegex {
  // Not kept: patterns of megabytes would fill the memory, and the places of others.
  if (pattern.length > MAX_LENGTH) return new InvalidRegex(`longer than ${MAX_LENGTH} characters`)
  let result = compiled.get(pattern)
  if (result === undefined) {
    result = compileNew(pattern)
    if (compiled.size < MAX_PATTERNS) compiled.set(pattern, result)
  }
  return result
}

function compileNew(pattern: string): Compiled | InvalidRegex {
  if (compiled.size >= MAX_PATTERNS) return new InvalidRegex(`more than ${MAX_PATTERNS} different patterns are in use`)
  try {
    // The pattern alone first: `a)(b` would be valid between the parentheses of the full match.
    const alone = new RE2(pattern, 'u')
    void alone
    return new RE2(`^(?:${pattern})$`, 'u')
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return new InvalidRegex(message.replace(/^Invalid regular expression: \/.*\/u: /s, ''))
  }
}
