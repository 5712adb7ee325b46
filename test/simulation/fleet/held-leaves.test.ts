/** Leaves that a hub does not know: their deletion is held like every other mass change, and made once it is approved. */
import { ConfigMap, Ingress } from '@seamark/kube'
import { heldSets, openObjectStore } from '@seamark/operator'
import { expect, it } from 'vitest'
import { LargeFleet, loadManager } from './large-fleet.ts'

const SECOND_MS = 1_000

it('too many leaves without a LeafIngress are held with an id, and deleted once when it is annotated', async () => {
  await loadManager()
  await using fleet = new LargeFleet({ members: 2, roots: 10 })
  await fleet.converge()
  const member = fleet.members.get('m0')
  const strays = Array.from({ length: 8 }, (_, index) => `stray-${index}`)
  const addStrays = () => {
    for (const name of strays)
      member?.put(Ingress, {
        metadata: {
          namespace: 'shop',
          name,
          labels: { 'seamark.io/managed': 'true', 'seamark.io/hub': 'hub' },
          annotations: { 'seamark.io/leaf': `ingress-${name}--m0` },
        },
      })
  }
  const left = () =>
    member?.informers.list(Ingress).filter(({ metadata }) => metadata.name?.startsWith('stray-')).length
  const held = async () => heldSets(openObjectStore(fleet.hub.client, 'manager'))

  addStrays()
  await fleet.passTenMinutes()
  await fleet.clock.advance(5 * SECOND_MS)
  const [set] = await held()
  expect([left(), set?.changes.length, set?.changes[0]]).toMatchObject([
    8,
    8,
    { op: 'delete', type: 'Ingress', name: 'm0/shop/stray-0', code: 'GuardTripped', isApprovable: true },
  ])
  // A sweep that finds the same writes nothing.
  const { writes } = fleet
  await fleet.passTenMinutes()
  expect([fleet.writes, (await held())[0]]).toEqual([writes, set])

  const annotations = { 'seamark.io/approve-held': set?.id ?? '' }
  fleet.hub.put(ConfigMap, { metadata: { namespace: 'manager', name: 'seamark', annotations } })
  await fleet.clock.advance(10 * SECOND_MS)
  expect([left(), await held()]).toEqual([0, []])
  // The leaves of roots are untouched, and the annotation approves nothing a second time.
  expect(member?.informers.list(Ingress)).toHaveLength(10)
  addStrays()
  await fleet.passTenMinutes()
  await fleet.clock.advance(5 * SECOND_MS)
  expect([left(), (await held())[0]?.id]).toEqual([8, set?.id])
})
