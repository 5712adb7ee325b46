/**
 * What an evaluation may cost. Evaluation is synchronous, so one counter is enough; it is set before each object.
 *
 * A rule never stops by an exception inside a loop (CEL's `all` and `exists` may absorb errors): loops ask `spend` and
 * skip their bodies once nothing is left, so that the rest of the evaluation is cheap.
 */

/** Steps of all rules of one object: about a second of work at worst. */
const MAX_STEPS = 1_000_000
/** Steps of one rule; the real server's limit per expression admits about as many loop iterations. */
const MAX_STEPS_PER_RULE = 200_000

let left = 0
let leftOfRule = 0

export function startObject(): void {
  left = MAX_STEPS
}

export function startRule(): void {
  leftOfRule = Math.min(left, MAX_STEPS_PER_RULE)
  left -= leftOfRule
}

export function endRule(): void {
  left += Math.max(0, leftOfRule)
}

/** Whether the step may be taken. */
export function spend(steps: number): boolean {
  leftOfRule -= steps
  return leftOfRule > 0
}

export function isExhausted(): boolean {
  return leftOfRule <= 0
}
