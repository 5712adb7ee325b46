/** Kubernetes quantities (`1.5Gi`, `200m`, `1e3`) as exact fractions: numerator over a power of ten. */

const BINARY: ReadonlyMap<string, bigint> = new Map([
  ['Ki', 2n ** 10n],
  ['Mi', 2n ** 20n],
  ['Gi', 2n ** 30n],
  ['Ti', 2n ** 40n],
  ['Pi', 2n ** 50n],
  ['Ei', 2n ** 60n],
])

/** Power of ten of a decimal suffix. */
const DECIMAL: ReadonlyMap<string, number> = new Map([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
])

export class Quantity {
  /** The value is `units` ÷ 10^`scale`. */
  readonly units: bigint
  readonly scale: number

  constructor(units: bigint, scale: number) {
    this.units = units
    this.scale = scale
  }

  compare(other: Quantity): bigint {
    const a = this.units * 10n ** BigInt(other.scale)
    const b = other.units * 10n ** BigInt(this.scale)
    return a < b ? -1n : a > b ? 1n : 0n
  }

  add(other: Quantity): Quantity {
    const scale = Math.max(this.scale, other.scale)
    const raise = (quantity: Quantity): bigint => quantity.units * 10n ** BigInt(scale - quantity.scale)
    return new Quantity(raise(this) + raise(other), scale)
  }

  negate(): Quantity {
    return new Quantity(-this.units, this.scale)
  }

  /** Undefined when the value is not a whole number that fits 64 bits. */
  asInteger(): bigint | undefined {
    const divisor = 10n ** BigInt(this.scale)
    const value = this.units / divisor
    return this.units % divisor === 0n && BigInt.asIntN(64, value) === value ? value : undefined
  }

  asFloat(): number {
    return Number(this.units) / 10 ** this.scale
  }
}

/** Undefined when the text is not a quantity. */
export function parseQuantity(text: string): Quantity | undefined {
  const match = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d{1,3})|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]))?$/.exec(text)
  if (match === null) return undefined
  const [, sign, number = '', exponent, suffix = ''] = match
  const [whole = '', fraction = ''] = number.split('.')
  const digits = BigInt(`${whole}${fraction}`) * (sign === '-' ? -1n : 1n)
  const binary = BINARY.get(suffix)
  if (binary !== undefined) return new Quantity(digits * binary, fraction.length)
  const power = (exponent === undefined ? (DECIMAL.get(suffix) ?? 0) : Number(exponent.slice(1))) - fraction.length
  return power >= 0 ? new Quantity(digits * 10n ** BigInt(power), 0) : new Quantity(digits, -power)
}

const DECIMAL_SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']

/**
 * The canonical text of a quantity, as kube-apiserver writes it: `4000m` is `4`, `1.5Gi` is `1536Mi`. Undefined: not a
 * quantity.
 */
export function formatQuantity(text: string): string | undefined {
  const quantity = parseQuantity(text)
  if (quantity === undefined) return undefined
  const isBinary = text.endsWith('i')
  // Digits below nano, and fractions of binary quantities (bytes), are rounded away from zero.
  const units = roundUp(quantity, isBinary && !isSmall(quantity) ? 0 : 9)
  if (units === 0n) return '0'
  if (isBinary && !isSmall(quantity)) return shorten(units, 1024n, BINARY_SUFFIXES)
  const exponent = /[eE][+-]?\d+$/.test(text)
  const suffixes = exponent ? DECIMAL_SUFFIXES.map((_, i) => (i === 3 ? '' : `e${(i - 3) * 3}`)) : DECIMAL_SUFFIXES
  return shorten(units, 1000n, suffixes)
}

function isSmall({ units, scale }: Quantity): boolean {
  const limit = 1024n * 10n ** BigInt(scale)
  return units < limit && units > -limit
}

/** Whole units at 10^-`decimals`. */
function roundUp({ units, scale }: Quantity, decimals: number): bigint {
  if (scale <= decimals) return units * 10n ** BigInt(decimals - scale)
  const divisor = 10n ** BigInt(scale - decimals)
  const rest = units % divisor
  return units / divisor + (rest === 0n ? 0n : rest > 0n ? 1n : -1n)
}

/** The largest suffix that leaves a whole number. */
function shorten(units: bigint, step: bigint, suffixes: readonly string[]): string {
  let [value, index] = [units, 0]
  while (index < suffixes.length - 1 && value % step === 0n) {
    value /= step
    index += 1
  }
  return `${value}${suffixes[index]}`
}
