/**
 * INV-14, INV-15 and “no secret in a log” in random worlds: a name is answered for the oldest object that may use it, after every write
 * only for a namespace that may use it, and nothing that is written has a secret. A violation shrinks to the fewest grants and actions.
 *
 * Each world is a whole manager with publish, balance, fleet and records, so that they are few; decisions.test.ts judges the same
 * invariants in thousands of worlds without one, and secrets.test.ts the errors of services and members.
 */
import '../synchronous-zlib.ts'
import { isThorough } from '@seamark/kit'
import { fleetCrds, loadBalancerCrds, playgroundCrds } from '@seamark/operator'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { RRsetObject } from '../records/simulated-zone.ts'
import type { Invariant } from '../scenario.ts'
import { simulate } from '../simulation.ts'
import {
  CANARIES,
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

const WORLDS = Number(process.env['SEAMARK_WORLDS'] ?? (isThorough ? 120 : 12))

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

function leaksIn(text: string): string[] {
  return CANARIES.filter((canary) => text.includes(canary) || text.includes(Buffer.from(canary).toString('base64')))
}

/** Of every object that is written, also of Events and statuses; a Secret is where it belongs. */
const hasNoSecret: Invariant = {
  name: 'no secret in an Event, a status or a record',
  check(_, { kind, key, after }) {
    if (kind === 'Secret' || after === undefined) return undefined
    const found = leaksIn(JSON.stringify(after))
    return found.length === 0 ? undefined : `${kind} ${key} has ${found.join()}`
  },
}

async function faultsOf(drawn: World): Promise<string[]> {
  const { grants, actions, hasMember } = drawn
  const faults: string[] = []
  const run = await simulate(
    {
      name: 'tenants',
      given: [...playgroundCrds(), ...loadBalancerCrds(), ...fleetCrds()] as never,
      prepare: prepareWorld,
      async play(stage) {
        const world = stageWorld(stage)
        world.run(drawn)
        await playWorld(stage, world, actions)
        if (world.ended() !== undefined) faults.push(`the manager ended: ${String(world.ended())}`)
        faults.push(...leaksIn(world.log.join('')).map((canary) => `the log has ${canary}`))
        const stored = stage.stored()
        const member = JSON.stringify(stored.list('Cluster'))
        if (hasMember && !`${member}${world.log.join('')}`.includes('[credential removed]'))
          faults.push(`the member repeated nothing: ${member}`)
        for (const host of worldHosts) {
          const wanted = expectedAnswer(stored, host, grants)
          const answered = world.zone.find(`${host}.${ZONE}`.replace(`.test.${ZONE}`, '.test.'))?.join(' ')
          // A wildcard answers for names of everybody: it waits for an approval.
          if (answered !== wanted && !(host.startsWith('*.') && answered === undefined))
            faults.push(`INV-14: ${host} is answered ${answered ?? 'nothing'}, not ${wanted ?? 'nothing'}`)
          // A root is a source like any other, whose host balance publishes instead.
          const sources = { publish: ['Ingress', 'HTTPProxy'], balance: ['DNSLoadBalancer'] }
          for (const child of stored.list('DNSEndpoint')) {
            const by = child.metadata.ownerReferences?.[0]
            const kinds = Object.values(sources).find((each) => each.includes(by?.kind ?? ''))
            const { namespace = '', name } = child.metadata
            if (kinds === undefined || !hostsOf(child).includes(host) || !mayUse(grants, namespace, host)) continue
            if (by?.uid !== ownerOf(stored, kinds, host, grants)?.metadata.uid)
              faults.push(`INV-14: DNSEndpoint ${namespace}/${name} has ${host} of another source`)
          }
        }
      },
      invariants: () => [isGranted(grants), hasNoSecret],
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
