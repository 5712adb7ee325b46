/** HTTP statuses that a health check expects: `"200"`, or the range `"200-299"`, which has both of its ends. */
import { z } from 'zod'

export interface StatusRange {
  readonly from: number
  readonly to: number
}

const RANGE = /^([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?$/

const ORDER = 'the first status of a range is not higher than the last'

const oneStatus = z
  .string()
  .max(7)
  .regex(RANGE, { error: 'is no status such as "200", and no range such as "200-299"' })
  // Texts of three digits are ordered like their numbers.
  .refine((text) => text.length < 7 || text.slice(0, 3) <= text.slice(4), { error: ORDER })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: 'self.size() < 7 || self.substring(0, 3) <= self.substring(4)',
        message: ORDER,
      },
    ],
  })

export const expectedStatus = z.array(oneStatus).min(1).max(20)

/** Without what is no status, which the schema refuses. The ends of a range may be in any order. */
export function parseExpectedStatus(texts: readonly string[]): StatusRange[] {
  return texts.flatMap((text) => {
    const match = RANGE.exec(text)
    if (match === null) return []
    const [first, last] = [Number(match[1]), Number(match[2] ?? match[1])]
    return [{ from: Math.min(first, last), to: Math.max(first, last) }]
  })
}

export function isExpected(ranges: readonly StatusRange[], status: number): boolean {
  return ranges.some(({ from, to }) => from <= status && status <= to)
}

/** `200 or 300-399` */
export function printExpectedStatus(ranges: readonly StatusRange[]): string {
  return ranges.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`)).join(' or ')
}
