/** A breaker that holds changes names the same numbers wherever it is reported. */
import { expect, it, onTestFinished } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { ZONE } from '../../../testing/plan-fixture.ts'
import { endpoint, OPEN_RULES, startSync } from '../../../testing/sync-fixture.ts'
import { desiredOf } from './sources/dns-endpoint-source.ts'
import type { BreakerChange } from './breaker-change.ts'
import type { Held } from './held-changes.ts'

const names = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `n${from + index}`)

/** A source with two names. */
function two(name: string): DNSEndpoint {
  const object = endpoint(name)
  const [first] = object.spec?.endpoints ?? []
  return { ...object, spec: { endpoints: [first, { ...first, dnsName: `${name}-more.${ZONE}` }] } } as DNSEndpoint
}

const countOf = (why: string) => /\d+ of \d+/.exec(why)?.[0]
const unique = (values: readonly unknown[]) => [...new Set(values)]

it('the reports, the guard state, the metric and a plan of the whole zone have one count', async () => {
  const breakers: BreakerChange[] = []
  let shown: () => Iterable<Held> = () => []
  const loop = await startSync({
    reports: { breaker: (change) => breakers.push(change) },
    observer: {
      planned: () => undefined,
      applied: () => undefined,
      synced: () => undefined,
      held: (all) => (shown = all),
    },
  })
  onTestFinished(async () => loop.stop())
  const { cluster, clock, store, engine } = loop
  for (const name of names(0, 22)) cluster.put(DNSEndpoint, endpoint(name))
  await clock.advance(2_000)
  // Each in a pass of its own.
  for (const name of names(0, 22)) {
    cluster.put(DNSEndpoint, two(name))
    await clock.advance(1_000)
  }
  for (const [from, to] of [
    [0, 11],
    [11, 12],
    [12, 13],
  ] as const) {
    for (const name of names(from, to)) cluster.remove(DNSEndpoint, `web/${name}`)
    await clock.advance(5_000)
  }
  const stored = [...(await store.list()).values()].flatMap(({ held }) => held)
  const inMetric = [...shown()]
  const last = breakers.at(-1)
  expect(unique(stored.map(({ why }) => countOf(why)))).toEqual(['13 of 22'])
  expect(unique(inMetric.map(({ why }) => countOf(why)))).toEqual(['13 of 22'])
  expect(countOf(last?.why ?? '')).toBe('13 of 22')
  const present = new Set(cluster.informers.list(DNSEndpoint).map(({ metadata }) => metadata.uid ?? ''))
  const planned = await engine.plan(
    {
      ...desiredOf(cluster.informers.list(DNSEndpoint), 300, OPEN_RULES),
      sources: async (owned) => ({ present, gone: new Set([...owned.keys()].filter((uid) => !present.has(uid))) }),
    },
    'all',
    new AbortController().signal,
  )
  const refused = planned.plans.flatMap((plan) => plan.refused)
  expect(unique(refused.map(({ why }) => countOf(why)))).toEqual(['13 of 22'])
  const ids = [refused, stored, inMetric].map((list) => unique(list.map(({ set }) => set)))
  expect(ids[0]).toHaveLength(1)
  expect(ids).toEqual([ids[0], ids[0], ids[0]])
  expect(breakers.map(({ state }) => state)).toEqual(['opened', 'changed', 'changed'])
  expect([refused.length, stored.length, inMetric.length, last?.changes]).toEqual([26, 26, 26, 26])
})
