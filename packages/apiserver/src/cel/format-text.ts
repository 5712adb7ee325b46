/** CEL's `string.format`: `%s`, `%d`, `%f`, `%e`, `%b`, `%x`, `%X`, `%o`, `%%` and precisions. */
export function formatText(pattern: string, args: readonly unknown[]): string {
  let next = 0
  return pattern.replace(/%(?:\.(\d+))?([a-zA-Z%])/g, (_, precision: string | undefined, verb: string) => {
    if (verb === '%') return '%'
    if (next >= args.length) throw new Error(`index ${next} out of range`)
    return formatOne(verb, args[next++], precision === undefined ? undefined : Number(precision))
  })
}

function formatOne(verb: string, value: unknown, precision: number | undefined): string {
  switch (verb) {
    case 's':
      return plainText(value)
    case 'd':
      return String(value)
    case 'f':
      return Number(value).toFixed(precision ?? 6)
    case 'e':
      return Number(value)
        .toExponential(precision ?? 6)
        .replace(/e([+-])(\d)$/, 'e$10$2')
    case 'b':
      return typeof value === 'boolean' ? String(Number(value)) : toInteger(value).toString(2)
    case 'o':
      return toInteger(value).toString(8)
    case 'x':
    case 'X': {
      const hex = typeof value === 'string' ? Buffer.from(value).toString('hex') : toInteger(value).toString(16)
      return verb === 'x' ? hex : hex.toUpperCase()
    }
    default:
      throw new Error(`unrecognized formatting clause "${verb}"`)
  }
}

function plainText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(plainText).join(', ')}]`
  if (value instanceof Date) return value.toISOString().replace('.000Z', 'Z')
  if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === null) {
    const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
    return `{${entries.map(([key, item]) => `${key}: ${plainText(item)}`).join(', ')}}`
  }
  return String(value)
}

function toInteger(value: unknown): bigint {
  if (typeof value === 'bigint') return value
  throw new Error('only integers can be formatted so')
}
