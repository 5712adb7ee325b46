/**
 * Every fleet scenario on API servers under crashes, stale restarts, lost events, 410, and empty and short lists.
 * crashes.test.ts tries a crash at every write.
 */
import type { Ingress } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { type DNSEndpoint, fleetCrds, loadBalancerCrds, playgroundCrds } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { expectConvergence } from '../expect-convergence.ts'
import { FleetActions, maskIds } from './actions.ts'
import { FleetBench } from './bench.ts'
import { fleetScenarios } from './scenarios.ts'
import type { Invariant, TestEnvironment } from '../scenario.ts'
import { exploration } from '../seeds.ts'

/** Few, because a run takes a second: a manager with two members for an hour. */
const EXPLORED = { crashes: 3, shortCrashes: 0, shortSamples: 0 }

const publishedIn = (environment: TestEnvironment): string[] =>
  (environment.list('DNSEndpoint') as DNSEndpoint[]).flatMap(({ spec }) =>
    spec.endpoints.flatMap(({ targets }) => targets),
  )

/** While a root exists, DNS answers it once it has done so. */
const keepsAnswer: Invariant = {
  name: 'a published root keeps an address in DNS',
  check(environment, { kind, key, before, after }) {
    if (kind !== 'DNSEndpoint' || before === undefined) return undefined
    const isLive = environment
      .list('Ingress')
      .some(({ metadata }) => metadata.deletionTimestamp === undefined && key.startsWith(`${metadata.namespace}/`))
    const targets = (after as DNSEndpoint | undefined)?.spec.endpoints.flatMap((endpoint) => endpoint.targets) ?? []
    return isLive && targets.length === 0 ? `${key} is empty` : undefined
  },
}

/** DNS forgets a leaf before the member does. */
const removesFromDnsFirst: Invariant = {
  name: 'a leaf is deleted only when DNS does not answer it',
  check(environment, { kind, key, type, before }) {
    if (kind !== 'Leaf' || type !== 'delete') return undefined
    const leaf: Ingress | undefined = before
    const addresses = (leaf?.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip ?? '')
    const published = publishedIn(environment)
    return addresses.some((address) => published.includes(address)) ? `${key} was deleted` : undefined
  },
}

const given = [...playgroundCrds(), ...loadBalancerCrds(), ...fleetCrds()] as Obj[]

describe('the fleet, whatever goes wrong', () => {
  it.each(fleetScenarios)('$title', async ({ title, run, given: options, except = [] }) => {
    const runs = await expectConvergence(
      {
        name: title,
        given,
        prepare: async (stage) => FleetBench.prepare(stage, options),
        play: async (stage) => run(new FleetActions(new FleetBench(stage))),
        mask: maskIds,
        invariants: () => [keepsAnswer, removesFromDnsFirst],
      },
      exploration({ ...EXPLORED, except }),
    )
    expect(runs).toBeGreaterThan(0)
  })
})
