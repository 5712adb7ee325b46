/**
 * T11: the Lease is lost and regained, again and again, with two replicas: who writes next continues where the other stopped,
 * and what is published in the end, and how often it was created and deleted, is what one process would have done.
 */
import { isThorough } from '@seamark/kit'
import { Lease } from '@seamark/kube'
import { playgroundCrds } from '@seamark/operator'
import { expect, it } from 'vitest'
import { Bench } from '../../integration/publish/bench.ts'
import { judge } from '../oracle.ts'
import type { Scenario, Stage } from '../scenario.ts'
import { seededRandom } from '../seeded-random.ts'
import { simulate } from '../simulation.ts'
import { simulatedCluster } from '../simulated-cluster.ts'

const LEASE = { lease: 'seamark', namespace: 'manager' }
const HOSTS = ['a', 'b', 'c', 'd', 'e', 'f']
const seeds = Array.from({ length: isThorough ? 20 : 5 }, (_, index) => index + 1)

/** `isTaken`: the Lease is taken by a process that never renews it, after some of the changes. */
function scenario(seed: number, isTaken: boolean): Scenario {
  const random = seededRandom(seed * 6101)
  return {
    name: 'publish, a Lease lost and regained',
    given: playgroundCrds(),
    async prepare(stage: Stage) {
      await Bench.prepare(simulatedCluster(stage))
    },
    async play(stage) {
      const bench = new Bench(simulatedCluster(stage))
      const leader = () => ({ leader: LEASE })
      await using _first = bench.runUnified({ children: ['DNSEndpoint'], prune: true }, leader())
      await using _second = bench.runUnified({ children: ['DNSEndpoint'], prune: true }, leader())
      await bench.untilChildren(0)
      let taken = 0
      const take = async () => {
        const found = await bench.client.get(Lease, 'manager/seamark')
        const spec = { ...found.spec, holderIdentity: `other-${++taken}` }
        await bench.client.update(Lease, { ...found, spec })
      }
      await stage.clock.advance(60_000)
      for (const name of HOSTS) {
        await bench.proxy({ metadata: { name }, spec: { routes: [], virtualhost: { fqdn: `${name}.example.com` } } })
        await stage.clock.advance(Math.floor(random() * 3_000))
        if (random() < 0.6 && isTaken) await take()
        await stage.clock.advance(Math.floor(random() * 40_000))
      }
      await bench.untilChildren(HOSTS.length)
      await bench.proxy({ metadata: { name: 'last' }, spec: { routes: [], virtualhost: { fqdn: 'last.example.com' } } })
      if (isTaken) await take()
      await bench.untilChildren(HOSTS.length + 1)
      await stage.clock.advance(60_000)
      const { holderIdentity, leaseTransitions = 0 } = (await bench.client.get(Lease, 'manager/seamark')).spec ?? {}
      expect(holderIdentity).not.toMatch(/^other/)
      expect(leaseTransitions > 0).toBe(isTaken)
    },
  }
}

it.each(seeds)('publishes what one process would have published, seed %i', async (seed) => {
  const reference = await simulate(scenario(seed, false), [], seed)
  const run = await simulate(scenario(seed, true), [], seed)
  expect(judge(reference, reference)).toEqual([])
  expect(judge(run, reference)).toEqual([])
})
