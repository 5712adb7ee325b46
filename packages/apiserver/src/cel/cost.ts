/**
 * Cost of operators and functions of a rule, by the size of their operands. `rewrite.ts` inserts a call before each of
 * them; it returns false once the budget is exhausted, and the operation is then skipped.
 *
 * A unit is the cost of one element or ten characters in a comparison, about 50 ns; a step of the budget (budget.ts) is
 * the cost of one run of a loop body, about 1 µs. kube-apiserver also charges by size, with different weights.
 */
import { remainingSteps, spend } from './budget.ts'

/** Characters of a duration in a rule: the engine's parser takes cubic time. */
export const MAX_DURATION_LENGTH = 128
const UNITS_PER_STEP = 20
const CHARS_PER_UNIT = 10
/** Searching a text compares at most this many characters of the pattern per position without skipping ahead. */
const CHARS_PER_COMPARISON = 250

/** Units of a value including nested values. Stops counting above `limit`. */
function measure(value: unknown, limit: number): number {
  if (typeof value === 'string') return 1 + value.length / CHARS_PER_UNIT
  if (typeof value !== 'object' || value === null) return 1
  if (value instanceof Uint8Array) return 1 + value.length / CHARS_PER_UNIT
  let units = 1
  for (const [key, item] of entriesOf(value)) {
    if (typeof key === 'string') units += key.length / CHARS_PER_UNIT
    units += measure(item, limit - units)
    if (units > limit) break
  }
  return units
}

function* entriesOf(value: object): Iterable<readonly [unknown, unknown]> {
  if (Array.isArray(value) || value instanceof Map) yield* value.entries()
  // Values of extension types (IP, URL, Quantity, …) are small.
  else if (isPlain(value)) for (const key of Object.keys(value)) yield [key, (value as Record<string, unknown>)[key]]
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as unknown
  return prototype === null || prototype === Object.prototype
}

const lengthOf = (value: unknown): number => (typeof value === 'string' || Array.isArray(value) ? value.length : 0)

function pay(units: number): boolean {
  return spend(units / UNITS_PER_STEP)
}

export function payOperator(operator: string, left: unknown, right: unknown): boolean {
  const limit = remainingSteps() * UNITS_PER_STEP
  switch (operator) {
    case '==':
    case '!=':
      // A comparison ends at a difference in size, or at the end of the smaller value.
      return pay(measure(right, measure(left, limit)))
    case 'in':
      return pay(Array.isArray(right) ? 1 + right.length * measure(left, limit) : 1)
    case '+':
      return pay(
        Array.isArray(left)
          ? 1 + left.length + lengthOf(right)
          : 1 + (lengthOf(left) + lengthOf(right)) / CHARS_PER_UNIT,
      )
    default:
      return pay(1 + Math.min(lengthOf(left), lengthOf(right)) / CHARS_PER_UNIT)
  }
}

/** `operands` are the receiver, if there is one, and the arguments. */
export function payCall(name: string, operands: readonly unknown[]): boolean {
  const limit = remainingSteps() * UNITS_PER_STEP
  let units = 0
  for (const operand of operands) if (units <= limit) units += measure(operand, limit - units)
  return pay(units + extraUnits(name, operands))
}

/** Cost of a function beyond reading its operands. */
function extraUnits(name: string, operands: readonly unknown[]): number {
  const [first, second, third] = operands
  switch (name) {
    case 'contains':
    case 'intersects':
    case 'equivalent':
      if (Array.isArray(first) && Array.isArray(second)) return 2 * first.length * second.length
      return (lengthOf(first) * lengthOf(second)) / CHARS_PER_COMPARISON
    case 'indexOf':
    case 'lastIndexOf':
    case 'split':
      return typeof first === 'string' ? (first.length * lengthOf(second)) / CHARS_PER_COMPARISON + first.length : 0
    case 'replace':
      return (lengthOf(first) / Math.max(1, lengthOf(second)) + 1) * (1 + lengthOf(third) / CHARS_PER_UNIT)
    case 'join':
      return (lengthOf(first) * lengthOf(second)) / CHARS_PER_UNIT
    case 'quantity':
    case 'isQuantity':
    case 'semver':
    case 'isSemver':
    case 'int':
    case 'uint':
      // Parsing digits into integers of any size takes quadratic time.
      return (lengthOf(first) / CHARS_PER_UNIT) ** 2
    case 'duration':
      return lengthOf(first) > MAX_DURATION_LENGTH ? Infinity : 0
    default:
      return 0
  }
}
