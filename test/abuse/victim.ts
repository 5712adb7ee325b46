/** A victim beside an attack: the same step again and again, without and with the attack, and how long it took. */
import { Lag } from '@seamark/kit/lag'

/** What a step may take longer than the slowest one without the attack. */
const SLACK_MS = 250

interface Waits {
  readonly p99Ms: number
  readonly maxMs: number
}

export interface Watched {
  readonly before: Waits
  readonly during: Waits
  /** What the machine, or a server in the process of the test, added to a wait during the attack. */
  readonly lagMs: number
  /** Steps that took longer than SLACK_MS and the lag plus the slowest without the attack, ms. */
  readonly late: readonly number[]
}

/**
 * `step` rejects when a request, an answer or a write of the victim fails, and so does this.
 *
 * @param stop tells an attack without an end that the victim was watched for long enough
 */
export async function watchVictim(
  step: (round: number) => Promise<void>,
  attack: () => Promise<void>,
  rounds: number,
  stop = () => {},
): Promise<Watched> {
  const run = async (first: number): Promise<number[]> => {
    const waits: number[] = []
    for (let round = first; round < first + rounds; round++) {
      const startedAt = performance.now()
      await step(round)
      waits.push(performance.now() - startedAt)
    }
    return waits
  }
  // The first steps of a process compile its code.
  await run(0)
  const before = await run(rounds)
  using lag = new Lag()
  const attacking = attack()
  const during = await run(2 * rounds).finally(stop)
  await attacking
  const lagMs = Math.round(lag.maxMs)
  // The machine may be busier now than it was at first.
  before.push(...(await run(rounds)))
  const limitMs = Math.max(...before) + SLACK_MS + lagMs
  return { before: summarize(before), during: summarize(during), lagMs, late: during.filter((ms) => ms > limitMs) }
}

function summarize(waits: readonly number[]): Waits {
  const sorted = waits.toSorted((a, b) => a - b)
  const at = (share: number): number => Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0)
  return { p99Ms: at(0.99), maxMs: at(1) }
}
