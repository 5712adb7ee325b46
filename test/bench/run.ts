/** `seamark run` as a whole, beside another checkout of this project: what it keeps in memory. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { measureResident } from './run/resident.ts'
import type { Figure } from './figure.ts'

/** A checkout of an earlier version with its modules installed. */
const baseline = process.env['SEAMARK_BASELINE'] ?? ''

function unavailable(): string | undefined {
  if (baseline === '') return 'SEAMARK_BASELINE names no checkout of an earlier version'
  return existsSync(join(baseline, 'bin/seamark')) ? undefined : `${baseline} has no bin/seamark`
}

export const figures: readonly Figure[] = [
  {
    name: 'run.memory',
    what: 'resident memory of `seamark run` with the gateway on, 10 000 HTTPProxies and 10 000 Services',
    unit: 'ratio',
    bound: { max: 0.95 },
    against: 'the checkout of SEAMARK_BASELINE',
    runs: 3,
    unavailable,
    measure: async () => {
      const before = await measureResident(baseline)
      const after = await measureResident(join(import.meta.dirname, '../..'))
      process.stderr.write(
        `run.memory: ${Math.round(after / 2 ** 20)} MiB, before ${Math.round(before / 2 ** 20)} MiB\n`,
      )
      return after / before
    },
  },
]
