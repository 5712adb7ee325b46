/** Compares the responses of both servers to one step. */
import { expect } from 'vitest'
import type { Outcome, Step } from './model-server.ts'
import { comparable } from './real-server.ts'

export function expectSame(step: Step, ours: Outcome, theirs: Outcome): void {
  const where = JSON.stringify(step)
  const message = ours.message === undefined ? undefined : theirs.message
  expect({ where, status: ours.status, message: ours.message }).toEqual({ where, status: theirs.status, message })
  expect({ where, object: comparable(ours.object) }).toEqual({ where, object: comparable(theirs.object) })
  expect({ where, causes: sorted(ours) }).toEqual({ where, causes: sorted(theirs) })
}

function sorted({ causes = [] }: Outcome): string[] {
  return causes.map(({ field, reason, message }) => JSON.stringify({ field, reason, message })).toSorted()
}
