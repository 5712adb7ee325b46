import { describe, expect, it } from 'vitest'
import { changeConfig, listSettings, loadConfig, type ManagerConfiguration } from './config.ts'
import { configurationNotices, type FoundConfiguration } from './process/reports/configuration-notices.ts'

const HEAD = 'apiVersion: config.seamark.io/v1alpha1\nkind: ManagerConfiguration\n'

function configOf(text: string): ManagerConfiguration {
  const loaded = loadConfig({ file: `${HEAD}${text}` })
  if (!loaded.ok) throw new Error(loaded.faults.join())
  return loaded.config
}

describe('a configuration that changes while the manager runs', () => {
  it('takes what may change, keeps the rest, and names both', () => {
    const running = configOf('mode: enforce\nlogLevel: info\nsafety: {maxChanges: 5}\n')
    const found = configOf(
      'mode: observe\nlogLevel: debug\nsafety: {maxChanges: 9}\nfleet: {enabled: true, answeredElsewhere: true}\n',
    )
    const change = changeConfig(running, found)
    expect(change).toMatchObject({
      live: ['logLevel', 'safety.maxChanges'],
      restart: ['mode', 'fleet.enabled', 'fleet.answeredElsewhere'],
    })
    expect(change.config).toEqual({ ...running, logLevel: 'debug', safety: { ...running.safety, maxChanges: 9 } })
    expect(running.logLevel).toBe('info')
    expect(changeConfig(change.config, found)).toMatchObject({
      live: [],
      restart: ['mode', 'fleet.enabled', 'fleet.answeredElsewhere'],
    })
  })

  it('names what only a file can contain', () => {
    const found = configOf('records: {markerKeyFrom: {env: KEY}}\n')
    expect(changeConfig(configOf(''), found).restart).toEqual(['records.markerKeyFrom'])
  })

  it('takes nothing that is valid only together with what needs a restart', () => {
    const running = configOf('dns: {listen: ["127.0.0.1:53"], zones: [a.test]}\n')
    const change = changeConfig(running, configOf('dns: {listen: [], zones: []}\n'))
    expect(change).toEqual({ config: running, live: [], restart: ['dns.zones', 'dns.listen'] })
  })

  it('changes log level, limits, zones and allow-lists, and neither what is watched nor where is listened', () => {
    const live = new Set(listSettings().flatMap(({ path, takesEffect }) => (takesEffect === 'live' ? [path] : [])))
    for (const path of [
      'pause',
      'logLevel',
      'grants',
      'denyAddresses',
      'safety.maxChanges',
      'safety.maxChangePercent',
      'records.zones',
      'records.dnsEndpoints.maxPerObject',
      'publish.allowedDnsNamespaces',
      'fleet.leafAnnotations',
      'dns.zones',
    ])
      expect([path, live.has(path)]).toEqual([path, true])
    for (const path of ['mode', 'metrics.address', 'publish.sources', 'records.owner', 'dns.listen', 'fleet.enabled'])
      expect([path, live.has(path)]).toEqual([path, false])
  })
})

describe('what is said about a changed file', () => {
  const about = { path: '/etc/seamark.yaml', at: '2026-01-02T03:04:05Z' }
  const same: FoundConfiguration = { kind: 'valid', live: [], restart: [] }
  const say = (found: FoundConfiguration, before = same): string[] =>
    configurationNotices(found, { ...about, before }).map(({ reason, message }) => `${reason}: ${message}`)

  it('names what took effect and what waits for a restart, once', () => {
    const found: FoundConfiguration = { kind: 'valid', live: ['logLevel'], restart: ['mode'] }
    expect(say(found)).toEqual([
      'ConfigurationChanged: /etc/seamark.yaml was changed at 2026-01-02T03:04:05Z; in effect without a restart: logLevel',
      'RestartNeeded: /etc/seamark.yaml was changed at 2026-01-02T03:04:05Z; restart the manager for: mode',
    ])
    expect(say({ kind: 'valid', live: [], restart: ['mode'] }, found)).toEqual([])
    expect(say(same, found)).toEqual([
      'ConfigurationChanged: /etc/seamark.yaml was changed at 2026-01-02T03:04:05Z; it is again as the manager runs',
    ])
    expect(say({ kind: 'valid', live: ['logLevel'], restart: [] }, found)[0]).toContain(
      ': logLevel; nothing waits for a restart any more',
    )
    expect(say(same)).toEqual([])
  })

  it('names the first faults of a file that cannot be used', () => {
    const faults = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
    expect(say({ kind: 'invalid', faults })).toEqual([
      'ConfigurationInvalid: /etc/seamark.yaml was changed at 2026-01-02T03:04:05Z and cannot be used; the manager keeps what it runs with, and would not start with the file: a; b; c; d; e; and 2 more',
    ])
  })
})
