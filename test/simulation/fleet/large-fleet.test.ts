import { expect, it } from 'vitest'
import { LargeFleet, type LargeFleetSize, loadManager } from './large-fleet.ts'

await loadManager()

it('a fleet at rest writes nothing, through contacts, lease renewals, sweeps and complete relists', async () => {
  await using fleet = new LargeFleet({ members: 4, roots: 6 })
  await fleet.converge()
  const before = fleet.writes
  await fleet.passTenMinutes()
  expect(fleet.writes - before).toBe(0)
})

it('a root with four times the leaves is not reconciled more often until they serve', async () => {
  const reconciles = async (size: LargeFleetSize): Promise<number> => {
    await using fleet = new LargeFleet(size)
    await fleet.converge()
    return fleet.rootReconciles
  }
  // More roots than a member takes at once: leaves come one after another.
  const few = await reconciles({ members: 6, roots: 25 })
  const many = await reconciles({ members: 24, roots: 25 })
  expect(many / few).toBeLessThan(1.3)
})
