/** Go's durations of HTTPProxy and of Contour's annotations, and the Gateway API's. */

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}

/** Go's longest duration, 2^63 ns or 292 years: Envoy rejects longer ones, and with them the routes of every other object. */
const MAX_MS = 2 ** 63 / 1e6

/** Milliseconds, or undefined if the text is no duration. */
export function parseGoDuration(text: string): number | undefined {
  if (text === '0') return 0
  let total = 0
  let rest = text
  while (rest !== '') {
    const part = /^(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/.exec(rest)
    if (part === null) return undefined
    total += Number(part[1]) * (UNITS[part[2] ?? ''] ?? 0)
    rest = rest.slice(part[0].length)
  }
  return text === '' || total >= MAX_MS ? undefined : total
}

/** Contour's timeouts: empty is the default, `infinity` disables (0). */
export function parseTimeout(text: string | undefined, fallbackMs: number): number | { readonly fault: string } {
  if (text === undefined || text === '') return fallbackMs
  if (text === 'infinity' || text === 'infinite') return 0
  const parsed = parseGoDuration(text)
  if (parsed === undefined)
    return { fault: `unable to parse timeout string "${text}": time: invalid duration "${text}"` }
  return parsed
}
