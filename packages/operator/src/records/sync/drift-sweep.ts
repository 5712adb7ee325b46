/**
 * Selects the names to verify next (INV-23): one part of all names per step, instead of all of them at once. Changes by
 * other programs are found within one round, and a round costs one read of each name.
 *
 * Names are processed in zone order (by labels, from the right), because services page in that order. Names that can only
 * be read together with their whole zone are processed in the first step of a round.
 */
import { compareText } from '../../rrset/rrset.ts'

/** Steps per round: with one step a minute every name is read once an hour. */
const STEPS = 60

export interface DriftSweep {
  /** The names of the next step; `all` is called at the beginning of each round. */
  next(all: () => Iterable<string>, isReadByName: (name: string) => boolean): ReadonlySet<string>
}

export function createDriftSweep(steps = STEPS): DriftSweep {
  let round: string[] = []
  let size = 0
  let step = steps
  return {
    next(all, isReadByName) {
      const together: string[] = []
      if (step >= steps) {
        step = 0
        round = []
        for (const name of all()) (isReadByName(name) ? round : together).push(name)
        round = round
          .map((name) => ({ name, key: zoneOrder(name) }))
          .sort((a, b) => compareText(a.key, b.key))
          .map(({ name }) => name)
        size = Math.ceil(round.length / steps)
      }
      const names = round.slice(step * size, (step + 1) * size)
      step++
      return new Set([...together, ...names])
    },
  }
}

function zoneOrder(name: string): string {
  return name.split('.').reverse().join('.')
}
