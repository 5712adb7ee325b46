import { expect, it } from 'vitest'
import { owned, record, registryEntry, want, ZONE } from '../../testing/plan-fixture.ts'
import { createKillSwitch } from '../process/kill-switch.ts'
import { memoryProvider } from '../providers/memory.ts'
import { RecordsConfig } from './config.ts'
import { openEngine } from './open-engine.ts'
import { memoryGuardStore } from './state/guard-state.ts'

it("an engine reads ExternalDNS' registry with the prefix, suffix and replacement of the configuration", async () => {
  const registry = { prefix: 'xd-%{record_type}-', wildcardReplacement: 'any' }
  const set = record('www', 'A', ['192.0.2.9'])
  const memory = memoryProvider({ zones: [ZONE] })
  for (const each of [...owned(set), registryEntry(set, 'xd', registry)]) memory.put(ZONE, each)
  const open = async (options: Partial<typeof registry>) => {
    const { engine } = await openEngine({
      config: RecordsConfig.parse({ owner: 'prod', cluster: 'cluster-1', registry: options }),
      mode: 'enforce',
      env: {},
      store: memoryGuardStore(),
      killSwitch: createKillSwitch(),
      providers: [memory],
    })
    const desired = [want(record('www', 'A', ['192.0.2.1']))]
    const sources = { present: new Set(desired.map(({ source }) => source.uid)), gone: new Set<string>() }
    const { plans } = await engine.plan({ desired, unusable: [], sources }, 'all', new AbortController().signal)
    return plans.flatMap(({ changes, refused }) => [...changes.map(({ op }) => op), ...refused.map(({ code }) => code)])
  }
  // The record has our marker and an ExternalDNS entry; the entry is found only with the configured prefix.
  expect(await open(registry)).toEqual(['OwnershipConflict'])
  expect(await open({})).toEqual(['update'])
})
