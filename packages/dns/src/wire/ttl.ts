/** TTLs and SOA timers: plain seconds, or BIND's units (1w2d3h4m5s). */
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** RFC 2181 §8: a TTL has 31 bits. */
export const MAX_TTL = 0x7fff_ffff

/** Seconds, or undefined when the text is no duration or does not fit 32 bits. */
export function parseDuration(text: string): number | undefined {
  let total = 0
  let digits = 0
  let value = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code >= 0x30 && code <= 0x39) {
      value = value * 10 + code - 0x30
      if (++digits > 10) return undefined
      continue
    }
    const unit = UNITS[text[i]!.toLowerCase()]
    if (unit === undefined || digits === 0) return undefined
    total += value * unit
    value = digits = 0
    if (i === text.length - 1) return total <= 0xffff_ffff ? total : undefined
  }
  if (digits === 0) return undefined
  total += value
  return total <= 0xffff_ffff ? total : undefined
}
