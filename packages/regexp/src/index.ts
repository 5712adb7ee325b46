/** The public surface of @seamark/regexp: regular expressions in RE2 syntax, matched in linear time. */
export { RegexpSyntaxError } from './escape.ts'
export type { Span } from './finder.ts'
export { FullMatcher, Steps, StepsExceeded } from './full-matcher.ts'
export { findMatcher, Matcher } from './matcher.ts'
export { MAX_PROGRAM, measureRegexp } from './program.ts'
