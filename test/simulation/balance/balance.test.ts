/** Every balance scenario under crashes at every write, stale restarts, lost events, 410, and empty and short lists. */
import type { Obj } from '@seamark/kube/object'
import { type DNSEndpoint, loadBalancerCrds, playgroundCrds } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { BalanceBench } from './bench.ts'
import { balanceScenarios } from './scenarios.ts'
import { expectConvergence } from '../expect-convergence.ts'
import type { Invariant } from '../scenario.ts'
import { exploration } from '../seeds.ts'
import { simulatedCluster } from '../simulated-cluster.ts'

/** INV-1: the records of a load balancer that exists are neither emptied nor deleted. */
const keepsTargets: Invariant = {
  name: 'the records of a load balancer keep a target',
  check(environment, { kind, key, isByController, type, before, after }) {
    if (kind !== 'DNSEndpoint' || !isByController) return undefined
    if (type === 'delete') {
      const [owner] = before?.metadata.ownerReferences ?? []
      const isOrphan = environment.find('DNSLoadBalancer', key.replace(/-dnslb$/, ''))?.metadata.uid !== owner?.uid
      return isOrphan ? undefined : `${key} was deleted`
    }
    const { endpoints } = (after as DNSEndpoint).spec
    return endpoints.length === 0 || endpoints.some(({ targets }) => targets.length === 0)
      ? `${key} is empty`
      : undefined
  },
}

const given = [...playgroundCrds(), ...loadBalancerCrds()] as Obj[]

describe('balance, whatever goes wrong', () => {
  it.each(balanceScenarios)('$title', async ({ title, run, mayRemove = false }) => {
    const runs = await expectConvergence(
      {
        name: title,
        given,
        prepare: async (stage) => BalanceBench.prepare(simulatedCluster(stage)),
        play: async (stage) => run(new BalanceBench(simulatedCluster(stage))),
        invariants: () => (mayRemove ? [] : [keepsTargets]),
      },
      exploration(),
    )
    expect(runs).toBeGreaterThan(0)
  })
})
