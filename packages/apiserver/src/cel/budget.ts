/**
 * Cost limits of evaluation. Evaluation is synchronous, so one counter suffices; it is reset before each object.
 *
 * A rule is never stopped by an exception inside a loop (CEL's `all` and `exists` may absorb errors): loops, operators
 * and functions call `spend` and are skipped once the budget is exhausted, so that the rest of the evaluation is cheap.
 */

/** Steps of all rules of one object: at most one or two seconds of work. */
export const MAX_STEPS = 1_000_000
/** Steps of one rule; kube-apiserver's limit per expression admits about as many loop iterations. */
export const MAX_STEPS_PER_RULE = 200_000

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

/** Whether the budget covers these steps. */
export function spend(steps: number): boolean {
  leftOfRule -= steps
  return leftOfRule > 0
}

export function remainingSteps(): number {
  return Math.max(0, leftOfRule)
}

export function isExhausted(): boolean {
  return leftOfRule <= 0
}
