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
import { findPlanFact } from './plan-fact.ts'

const HOST = 'www.example.test'
const TARGETS = ['192.0.2.1']
const { signal } = new AbortController()

const endpoint: DNSEndpoint = {
  metadata: { namespace: 'web', name: 'shop', uid: 'u-1', generation: 1 },
  spec: { endpoints: [{ dnsName: HOST, recordType: 'A', recordTTL: 60, targets: TARGETS }] },
}

function engineOf(provider: Provider, killSwitch = createKillSwitch()): Engine {
  return createEngine({
    providers: [provider],
    owner: { id: 'me', cluster: 'c-1' },
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
})
