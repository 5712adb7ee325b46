/**
 * Regular expressions of users, in RE2 syntax as Envoy's. What is refused depends on the pattern alone: replicas agree, and
 * Envoy accepts what is accepted here.
 */
import { FullMatcher, measureRegexp, RegexpSyntaxError, Steps, StepsExceeded } from '@seamark/regexp'

export { Steps, StepsExceeded }

/** Characters of a pattern; the schema of HTTPProxy has no limit of its own. */
const MAX_LENGTH = 4_096
/** Instructions of a pattern with its repetitions written out: `(a{30}){30}` has 900. */
export const MAX_SIZE = 10_000
/** Steps of all regular expressions that one request is compared with: some milliseconds. */
export const MAX_STEPS = 1_000_000

/** Why the pattern cannot be used; undefined if it can. */
export function regexFault(pattern: string): string | undefined {
  if (pattern.length > MAX_LENGTH) return `longer than ${MAX_LENGTH} characters`
  try {
    const size = measureRegexp(pattern)
    return size > MAX_SIZE ? `its repetitions make it ${size} instructions long, more than ${MAX_SIZE}` : undefined
  } catch (error) {
    if (!(error instanceof RegexpSyntaxError)) throw error
    return error.message.replace(/^error parsing regexp: /, '')
  }
}

/** Matches the whole text, as Envoy does. `pattern` is one that `regexFault` accepts. */
export function fullMatcher(pattern: string): (text: string, steps: Steps) => boolean {
  const matcher = new FullMatcher(pattern)
  return (text, steps) => matcher.test(text, steps)
}

/** The budget of one request. */
export function requestSteps(): Steps {
  return new Steps(MAX_STEPS)
}
