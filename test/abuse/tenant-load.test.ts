/** One namespace requests very many endpoints: the manager keeps its lease, and the changes of others do not wait for it. */
import { isThorough } from '@seamark/kit'
import { expect, it } from 'vitest'
import { startLimited } from './limited-process.ts'

const HEAP_MIB = 768
/** Names of one pass, of which each namespace has a part. */
const PASS_NAMES = 5_000

interface Outcome {
  readonly writtenAtFirst: number
  readonly greedyWritten: number
  readonly changes: number
  readonly refused: number
  readonly leaseTransitions: number
  readonly lost: string
}

/** Endpoints that are all written. */
const WRITTEN = isThorough ? 100_000 : 30_000

it.each([
  [`${WRITTEN} endpoints, a limit that lets them pass`, [`${WRITTEN}`, `${WRITTEN}`], { written: WRITTEN, refused: 0 }],
  ['200 000 endpoints, the default limit', ['200000', '20000'], { written: 20_000, refused: 180 }],
  ['200 000 endpoints that a starting manager finds', ['200000', '20000', 'before'], { written: 20_000, refused: 180 }],
] as const)('%s', { timeout: 180_000 }, async (_title, args, { written, refused }) => {
  const program = startLimited('tenant-load.ts', args, HEAP_MIB)
  try {
    const [text] = await program.line(/^\{.*\}$/)
    const outcome = JSON.parse(text) as Outcome
    expect(outcome).toMatchObject({ lost: '', leaseTransitions: 0, greedyWritten: written, refused })
    // The first change of the other namespace is written with the first part of the many.
    expect(outcome.writtenAtFirst).toBeLessThan(PASS_NAMES)
    // And so is every later one: a change for each pass.
    expect(outcome.changes).toBeGreaterThanOrEqual(written / PASS_NAMES)
  } finally {
    await program.stop()
  }
})
