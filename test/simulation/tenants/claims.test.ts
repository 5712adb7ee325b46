/**
 * INV-14 and INV-15 in random worlds: a name is answered for the oldest object that may use it, after every write only for a
 * namespace that may use it. A violation shrinks to the fewest grants and actions that show it.
 */
import '../synchronous-zlib.ts'
import { isThorough } from '@seamark/kit'
import { playgroundCrds } from '@seamark/operator'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { RRsetObject } from '../records/simulated-zone.ts'
import type { Invariant } from '../scenario.ts'
import { simulate } from '../simulation.ts'
import {
  expectedAnswer,
  type Grant,
  hostsOf,
  mayUse,
  ownerOf,
  playWorld,
  prepareWorld,
  stageWorld,
  tenantOf,
  type World,
  worldHosts,
  worlds,
  ZONE,
} from './world.ts'

const WORLDS = Number(process.env['SEAMARK_WORLDS'] ?? (isThorough ? 500 : 25))

const isGranted = (grants: readonly Grant[]): Invariant => ({
  name: 'INV-15: a record holds addresses only of namespaces that may use its name',
  check(_, { kind, after }) {
    const set = (after as RRsetObject | undefined)?.rrset
    if (kind !== 'RRset' || set?.type !== 'A') return undefined
    const host = set.name.slice(0, -1)
    const foreign = set.values.filter((address) => !mayUse(grants, tenantOf(address), host))
    return foreign.length === 0 ? undefined : `${host} answers ${foreign.join(' ')}`
  },
})

async function faultsOf({ grants, actions }: World): Promise<string[]> {
  const faults: string[] = []
  const run = await simulate(
    {
      name: 'tenants',
      given: playgroundCrds(),
      prepare: prepareWorld,
      async play(stage) {
        const world = stageWorld(stage)
        world.run(grants)
        await playWorld(stage, world, actions)
        if (world.ended() !== undefined) faults.push(`the manager ended: ${String(world.ended())}`)
        const stored = stage.stored()
        for (const host of worldHosts) {
          const wanted = expectedAnswer(stored, host, grants)
          const answered = world.zone.find(`${host}.${ZONE}`.replace(`.test.${ZONE}`, '.test.'))?.join(' ')
          if (answered !== wanted)
            faults.push(`INV-14: ${host} is answered ${answered ?? 'nothing'}, not ${wanted ?? 'nothing'}`)
          const owner = ownerOf(stored, 'Ingress', host, grants)?.metadata.uid
          for (const child of stored.list('DNSEndpoint')) {
            const by = child.metadata.ownerReferences?.[0]?.uid
            if (by !== undefined && hostsOf(child).includes(host) && by !== owner)
              faults.push(
                `INV-14: DNSEndpoint ${child.metadata.namespace}/${child.metadata.name} has ${host} of another source`,
              )
          }
        }
      },
      invariants: () => [isGranted(grants)],
    },
    [],
    1,
  )
  return [
    ...faults,
    ...run.violations.map(({ message }) => message),
    ...(run.failure === undefined ? [] : [run.failure]),
  ]
}

it(`no tenant gets a name of another one, in ${WORLDS} worlds`, { timeout: 600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(worlds, async (world) => {
      expect(await faultsOf(world)).toEqual([])
    }),
    { numRuns: WORLDS },
  )
})
