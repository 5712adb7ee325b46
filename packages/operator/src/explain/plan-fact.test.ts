import { describe, expect, it } from 'vitest'
import type { DNSEndpoint } from '../api/dns-endpoint.ts'
import { memoryProvider } from '../providers/memory.ts'
import type { Provider } from '../providers/provider.ts'
import { createEngine, type Engine } from '../records/engine.ts'
import { ProviderError } from '../rrset/error.ts'
import { memoryGuardStore } from '../records/state/guard-state.ts'
import { createKillSwitch } from '../process/kill-switch.ts'
import { sourceOf, desiredOf } from '../records/sync/sources/dns-endpoint-source.ts'
import { OPEN_RULES } from '../../testing/sync-fixture.ts'
import { warning } from '../finding.ts'
import type { Plan } from '../records/plan/plan.ts'
import type { PlanStore } from '../records/stores/plan-store.ts'
import { findPlanFact } from './plan-fact.ts'

const HOST = 'www.example.test'
const TARGETS = ['192.0.2.1']
const { signal } = new AbortController()

const endpoint: DNSEndpoint = {
  metadata: { namespace: 'web', name: 'shop', uid: 'u-1', generation: 1 },
  spec: { endpoints: [{ dnsName: HOST, recordType: 'A', recordTTL: 60, targets: TARGETS }] },
}

/** In memory. */
function memoryPlanStore(): PlanStore {
  const plans: Plan[] = []
  return {
    save: async (plan) => void plans.unshift(plan),
    remove: async (plan) => void plans.splice(plans.indexOf(plan), 1),
    list: async () =>
      plans.map(({ number, provider, zone, changes }) => ({ number, provider, zone, changes: changes.length })),
    load: async (number) => plans.filter((plan) => plan.number === number),
  }
}

function engineOf(
  provider: Provider,
  killSwitch = createKillSwitch(),
  cluster = 'c-1',
  plans: PlanStore = memoryPlanStore(),
): Engine {
  return createEngine({
    plans,
    providers: [provider],
    owner: { id: 'me', cluster },
    store: memoryGuardStore(),
    killSwitch,
    mode: 'enforce',
    types: ['A', 'AAAA', 'CNAME'],
  })
}

const ask = async (engine: Engine, endpoints = [endpoint]) =>
  findPlanFact(HOST, TARGETS, { engine, endpoints, defaultTtl: 300, rules: OPEN_RULES }, signal)

async function publish(engine: Engine): Promise<void> {
  const sources = { present: new Set([sourceOf(endpoint).uid]), gone: new Set<string>() }
  const { plans } = await engine.plan({ ...desiredOf([endpoint], 300, OPEN_RULES), sources }, 'all', signal)
  for (const plan of plans) await engine.apply(plan, signal)
}

describe('the plan fact of a name', () => {
  it('a desired record that was not written yet is pending, and there are no records', async () => {
    expect(await ask(engineOf(memoryProvider({ zones: ['example.test.'] })))).toEqual({
      zone: 'example.test',
      pending: ['create A 192.0.2.1'],
      refused: [],
      records: [],
      isWithoutState: true,
    })
  })

  it('a desired record that was written leaves no pending change', async () => {
    const engine = engineOf(memoryProvider({ zones: ['example.test.'] }))
    await publish(engine)
    expect(await ask(engine)).toEqual({ zone: 'example.test', pending: [], refused: [], records: TARGETS })
    expect((await ask(engine)).isWithoutState).toBeUndefined()
  })

  it('a foreign record causes a refusal and is shown', async () => {
    const provider = memoryProvider({ zones: ['example.test.'] })
    provider.put('example.test.', { name: `${HOST}.`, type: 'A', ttl: 60, values: ['198.51.100.9'] })
    expect(await ask(engineOf(provider))).toMatchObject({
      pending: [],
      refused: [{ reason: 'UnownedRecordExists' }],
      records: ['198.51.100.9'],
    })
  })

  it('a pause causes a refusal', async () => {
    const fact = await ask(engineOf(memoryProvider({ zones: ['example.test.'] }), createKillSwitch('test')))
    expect([fact.pending, fact.refused.map(({ reason }) => reason)]).toEqual([[], ['Paused']])
  })

  it('a name outside of every zone has no zone', async () => {
    expect(await ask(engineOf(memoryProvider({ zones: ['other.test.'] })))).toMatchObject({
      zone: '',
      refused: [{ reason: 'NoMatchingZone' }],
    })
    expect((await ask(engineOf(memoryProvider({ zones: ['other.test.'] })), [])).refused).toMatchObject([
      { reason: 'NoMatchingZone' },
    ])
  })

  it('a provider that cannot be read is an error, not an empty zone', async () => {
    const down = async (): Promise<never> => {
      throw new ProviderError('ProviderUnavailable', 'later', 'connection refused')
    }
    const memory = memoryProvider({ zones: ['example.test.'] })
    expect(await ask(engineOf({ ...memory, zones: down }))).toMatchObject({
      zone: '',
      refused: [],
      providerFault: { reason: 'ProviderUnavailable' },
    })
    expect(await ask(engineOf({ ...memory, read: down }))).toMatchObject({
      refused: [],
      providerFault: { reason: 'ProviderUnavailable' },
    })
  })

  it('a guard that judges all names of the zone holds the change of this one: another cluster uses the owner id', async () => {
    const provider = memoryProvider({ zones: ['example.test.'] })
    const other: DNSEndpoint = {
      metadata: { namespace: 'web', name: 'other', uid: 'u-2', generation: 1 },
      spec: { endpoints: [{ dnsName: 'other.example.test', recordType: 'A', recordTTL: 60, targets: TARGETS }] },
    }
    const first = engineOf(provider, createKillSwitch(), 'c-2')
    const sources = { present: new Set([sourceOf(other).uid]), gone: new Set<string>() }
    const { plans } = await first.plan({ ...desiredOf([other], 300, OPEN_RULES), sources }, 'all', signal)
    for (const plan of plans) await first.apply(plan, signal)
    const { pending, refused } = await ask(engineOf(provider))
    expect([pending, refused.map(({ reason }) => reason)]).toEqual([[], ['OwnerInOtherCluster']])
  })

  it('a name that nothing requests any more was removed by the last plan that changed it', async () => {
    const plans = memoryPlanStore()
    const engine = engineOf(memoryProvider({ zones: ['example.test.'] }), createKillSwitch(), 'c-1', plans)
    await publish(engine)
    const deps = { engine, endpoints: [], defaultTtl: 300, rules: OPEN_RULES, plans }
    const gone = { present: new Set<string>(), gone: new Set([sourceOf(endpoint).uid]) }
    expect((await findPlanFact(HOST, [], deps, signal)).removed).toBeUndefined()
    const removal = await engine.plan({ desired: [], unusable: [], sources: gone }, 'all', signal)
    for (const plan of removal.plans) await engine.apply(plan, signal)
    expect((await findPlanFact(HOST, [], deps, signal)).removed).toMatchObject({ reason: 'SourceGone' })
    expect((await findPlanFact('never.example.test', [], deps, signal)).removed).toBeUndefined()
  })

  it('what the manager reported is asked for only while a change is pending', async () => {
    const engine = engineOf(memoryProvider({ zones: ['example.test.'] }))
    const asked: string[] = []
    const reports = async (endpoints: readonly DNSEndpoint[], name: string) => {
      asked.push(`${endpoints.map(({ metadata }) => metadata.name).join()} ${name}`)
      return [warning('CredentialsInvalid', 'BADTIME')]
    }
    const deps = { engine, endpoints: [endpoint], defaultTtl: 300, rules: OPEN_RULES, reports }
    expect((await findPlanFact(HOST, TARGETS, deps, signal)).reported).toMatchObject([{ reason: 'CredentialsInvalid' }])
    expect(asked).toEqual(['shop www.example.test.'])
    await publish(engine)
    expect((await findPlanFact(HOST, TARGETS, deps, signal)).reported).toBeUndefined()
  })
})
