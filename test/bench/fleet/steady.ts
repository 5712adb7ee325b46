/** Writes of a fleet in its steady state. `SEAMARK_STEADY=20x200` measures another size: members x roots. */
import { LargeFleet, loadManager } from '../../simulation/fleet/large-fleet.ts'
import type { Figure } from '../figure.ts'

const [members = 0, roots = 0] = (process.env['SEAMARK_STEADY'] ?? '100x1000').split('x').map(Number)

async function measureSteady(): Promise<number> {
  await loadManager()
  await using fleet = new LargeFleet({ members, roots })
  await fleet.converge()
  const before = fleet.writes
  await fleet.passTenMinutes()
  return fleet.writes - before
}

export const steadyWrites: Figure = {
  name: 'fleet.steady.writes',
  what: `writes to hub and members in 10 min of steady state, ${roots} roots on ${members} clusters, with contacts, lease renewals, sweeps and two complete relists, in virtual time`,
  unit: 'writes',
  bound: { max: 0 },
  against: '-',
  runs: 1,
  measure: measureSteady,
}
