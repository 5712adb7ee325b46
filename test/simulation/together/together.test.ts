/** The steps of test/integration/together in virtual time, with every fault of the matrix: all capabilities in one manager. */
import '../synchronous-zlib.ts'
import { Ingress } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { type DNSEndpoint, fleetCrds, loadBalancerCrds, playgroundCrds } from '@seamark/operator'
import { expect, it } from 'vitest'
import { expectConvergence } from '../expect-convergence.ts'
import { maskIds } from '../fleet/actions.ts'
import type { RRsetObject } from '../records/simulated-zone.ts'
import type { Invariant } from '../scenario.ts'
import { exploration } from '../seeds.ts'
import { TogetherBench } from './bench.ts'

const given = [...playgroundCrds(), ...loadBalancerCrds(), ...fleetCrds()] as Obj[]
const HOST = 'shop.example.com'
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** What is a root is published by balance alone: publish has no verdict of a probe. */
const hasOneWriter: Invariant = {
  name: 'the host of a root is in the DNSEndpoint of balance alone',
  check(environment, { kind, key, after }) {
    if (kind !== 'DNSEndpoint' || after === undefined) return undefined
    const isOfHost = (after as DNSEndpoint).spec.endpoints.some(({ dnsName }) => dnsName === HOST)
    return isOfHost && !key.endsWith('-dnslb') ? `${key} has ${HOST}` : undefined
  },
}

/** `judged`: gateways that passed a probe at some time. */
const answersProbed = (judged: ReadonlySet<string>): Invariant => ({
  name: 'an address is answered only after its probe passed',
  check(_, { kind, key, after }) {
    if (kind !== 'RRset' || key !== `${HOST}. A` || after === undefined) return undefined
    const { values } = (after as RRsetObject).rrset
    const wrong = values.filter((value) => !judged.has(value))
    return wrong.length > 0 ? `${wrong.join(' ')} was not probed` : undefined
  },
})

it('a root comes, its gateways and clusters come and go, and it goes', async () => {
  let judged = new Set<string>()
  const runs = await expectConvergence(
    {
      name: 'together',
      given,
      prepare: async (stage) => {
        judged = new Set()
        await TogetherBench.prepare(stage)
      },
      play: async (stage) => {
        const bench = new TogetherBench(stage)
        await using _app = bench.run()
        await bench.admit('eu1')
        await bench.admit('us1')
        await bench.pass(MINUTE_MS)
        await bench.expectAnswer()
        for (const address of ['192.0.2.1', '192.0.2.2']) judged.add(address)
        for (const name of ['eu1', 'us1']) bench.judge(name, 'healthy')
        await bench.expectAnswer('eu1', 'us1')
        bench.judge('eu1', 'unhealthy')
        await bench.expectAnswer('us1')
        bench.judge('eu1', 'healthy')
        await bench.expectAnswer('eu1', 'us1')
        await bench.drain('eu1', true)
        await bench.expectAnswer('us1')
        await bench.pass(10 * MINUTE_MS)
        await bench.drain('eu1', false)
        await bench.admit('eu1')
        await bench.expectAnswer('eu1', 'us1')
        const heal = bench.loseApiServer('eu1')
        await bench.pass(HOUR_MS)
        await bench.expectAnswer('eu1', 'us1')
        heal()
        await bench.pass(10 * MINUTE_MS)
        await bench.expectRefusedRival()
        await bench.expectAnswer('eu1', 'us1')
        await bench.client.delete(Ingress, 'shop/shop')
        await bench.expectGone()
        await bench.expectAnswer()
      },
      mask: maskIds,
      invariants: () => [hasOneWriter, answersProbed(judged)],
    },
    exploration({ crashes: 9, hasDisorder: true }),
  )
  expect(runs).toBeGreaterThan(0)
  // A run takes some seconds, and there is one for each fault and for each of nine crashes.
}, 900_000)
