/** Every balance scenario under crashes at every write, stale restarts, lost events, 410, and empty and short lists. */
import type { Obj } from '@seamark/kube/object'
import { type DNSEndpoint, loadBalancerCrds, playgroundCrds } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { BalanceBench } from './bench.ts'
import { type BalanceScenario, balanceScenarios } from './scenarios.ts'
import { expectConvergence } from '../expect-convergence.ts'
import { expectRepeatable } from '../expect-repeatable.ts'
import type { Invariant, Scenario } from '../scenario.ts'
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

/** Two watches have no order between them: records may seem to be there while their load balancer is deleted. */
const hasOwner: Invariant = {
  name: 'records are written only for a load balancer that exists',
  check(environment, { kind, key, isByController, type, after }) {
    if (kind !== 'DNSEndpoint' || !isByController || type === 'delete') return undefined
    const [owner] = after?.metadata.ownerReferences ?? []
    const uid = environment.find('DNSLoadBalancer', key.replace(/-dnslb$/, ''))?.metadata.uid
    return uid === owner?.uid ? undefined : `${key} was written after its load balancer`
  },
}

const given = [...playgroundCrds(), ...loadBalancerCrds()] as Obj[]

function simulated({ title, run, mayRemove = false }: BalanceScenario): Scenario {
  return {
    name: title,
    given,
    prepare: async (stage) => BalanceBench.prepare(simulatedCluster(stage)),
    play: async (stage) => run(new BalanceBench(simulatedCluster(stage))),
    invariants: () => [hasOwner, ...(mayRemove ? [] : [keepsTargets])],
  }
}

describe('balance, whatever goes wrong', () => {
  it.each(balanceScenarios)('$title', async (scenario) => {
    expect(await expectConvergence(simulated(scenario), exploration())).toBeGreaterThan(0)
  })
})

it('a run of balance does not depend on the machine', async () => {
  const [first] = balanceScenarios
  expect(first).toBeDefined()
  if (first !== undefined) await expectRepeatable(simulated(first))
})
