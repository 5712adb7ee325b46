import { manager, Secret, systemClock } from '@seamark/kube'
import { memoryCluster, type MemoryCluster } from '@seamark/kube/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { DNSProvider } from '../../api/dns-provider.ts'
import { createDnsWriter, type DnsWriter } from '../../dnslb/dns-writer.ts'
import { createProviderTypes } from '../../dnslb/provider-types.ts'
import { memoryProvider } from '../../providers/memory.ts'
import { memoryGuardStore } from '../../records/state/guard-state.ts'
import { BALANCE_DEFAULTS } from '../load-balancer.ts'
import { PROVIDER_FINALIZER, type ProviderLimits } from './decide-provider.ts'
import { setUpProviders } from './provider-controller.ts'

const running: { stop: AbortController; outcome: Promise<unknown> }[] = []
afterEach(async () => {
  for (const { stop, outcome } of running.splice(0)) {
    stop.abort()
    await outcome
  }
})

/** The type `memory` serves the zones in the key ZONES, and refuses the password `wrong`. */
async function start(limits: ProviderLimits = {}): Promise<{
  cluster: MemoryCluster
  writer: DnsWriter
  created: string[]
  closed: string[]
}> {
  const cluster = memoryCluster()
  const created: string[] = []
  const closed: string[] = []
  const types = createProviderTypes()
  types.register('memory', async (name, values) => {
    if (values['PASSWORD'] === 'wrong') throw new Error('the password is not accepted')
    created.push(`${name} ${values['ZONES'] ?? ''}`)
    return {
      ...memoryProvider({ name, zones: (values['ZONES'] ?? '').split(',') }),
      close: async () => void closed.push(name),
    }
  })
  const writer = await createDnsWriter({
    identity: 'ring',
    defaults: BALANCE_DEFAULTS,
    providers: { staticTypes: [] },
    types,
    env: {},
    store: memoryGuardStore(),
    isDryRun: false,
    clock: systemClock,
    log: cluster.log,
    claimedNames: async () => new Set(),
    isReady: () => true,
  })
  const mgr = await manager({ cluster, fieldManager: 'test', log: cluster.log, grace: '2s' })
  setUpProviders(mgr, { ...writer, limits, create: (type, name, values) => types.create(type, name, values) })
  const stop = new AbortController()
  running.push({ stop, outcome: mgr.run(stop.signal).catch((error: unknown) => error) })
  return { cluster, writer, created, closed }
}

function putSecret(cluster: MemoryCluster, name: string, values: Record<string, string>): void {
  const live = cluster.informers.get(Secret, `ns/${name}`)
  const data = Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  )
  const { finalizers } = (live?.metadata ?? {}) as { finalizers?: string[] }
  cluster.put(Secret, { metadata: { namespace: 'ns', name, ...(finalizers !== undefined && { finalizers }) }, data })
}

function putProvider(cluster: MemoryCluster, name: string, spec: DNSProvider['spec'], created = 1): void {
  const creationTimestamp = `2029-01-01T00:00:0${created}Z`
  cluster.put(DNSProvider, { metadata: { namespace: 'ns', name, creationTimestamp }, spec })
}

const statusOf = (cluster: MemoryCluster, name: string) => cluster.informers.get(DNSProvider, `ns/${name}`)?.status

describe('the controller of DNSProviders', () => {
  it.each<[string, DNSProvider['spec'], string]>([
    ['an unknown scope', { type: 'memory', scope: { type: 'World' } }, "invalid provider scope 'World'"],
    ['no type', {}, 'type field missing for provider ns/p'],
    ['an unknown type', { type: 'gcp' }, "unknown provider type 'gcp' for  ns/p"],
    ['no key', { type: 'aws' }, "'AWS_ACCESS_KEY_ID' required in secret"],
    ['no Secret', { type: 'memory', secretRef: { name: 'absent' } }, 'cannot get secret ns/absent for provider ns/p: '],
  ])('with %s is in state Error', async (_case, spec, message) => {
    const { cluster } = await start()
    putProvider(cluster, 'p', spec)
    await expect.poll(() => statusOf(cluster, 'p')).toMatchObject({ state: 'Error' })
    expect(statusOf(cluster, 'p')?.message).toContain(message)
    const events = () => cluster.requests.filter(({ kind, verb }) => kind.startsWith('Event') && verb !== 'list')
    await expect.poll(events).toHaveLength(1)
  })

  it.each<[string, ProviderLimits, string]>([
    ['its namespace', { providerNamespaces: ['garden'] }, 'DNSProviders are taken from the namespaces garden only'],
    ['that of its Secret', { secretNamespaces: ['garden'] }, 'secrets are read in the namespaces garden only'],
  ])('in state Error where %s is not among those of the flags; no Secret is read', async (_case, limits, message) => {
    const { cluster } = await start(limits)
    putSecret(cluster, 'p', { ZONES: 'example.test' })
    putProvider(cluster, 'p', { type: 'memory', secretRef: { name: 'p' } })
    await expect.poll(() => statusOf(cluster, 'p')).toMatchObject({ state: 'Error' })
    expect(statusOf(cluster, 'p')?.message).toContain(message)
    expect(cluster.requests.filter(({ kind }) => kind === 'Secret')).toEqual([])
  })

  it('registers a provider, follows its Secret, and keeps the old settings while the new ones are refused', async () => {
    const { cluster, writer, created } = await start()
    putSecret(cluster, 's', { ZONES: 'example.com.' })
    putProvider(cluster, 'p', { type: 'memory', secretRef: { name: 's' } })
    await expect.poll(() => statusOf(cluster, 'p')?.state).toBe('Active')
    expect(cluster.informers.get(DNSProvider, 'ns/p')?.metadata.finalizers).toContain(PROVIDER_FINALIZER)
    expect(writer.registry.choose('x.example.com.', 'any')).toMatchObject({ state: 'ready' })
    putSecret(cluster, 's', { ZONES: 'example.com.', PASSWORD: 'wrong' })
    await expect.poll(() => statusOf(cluster, 'p')?.message).toBe('the password is not accepted')
    expect(writer.registry.choose('x.example.com.', 'any')).toMatchObject({ state: 'ready' })
    putSecret(cluster, 's', { ZONES: 'example.org.' })
    await expect.poll(() => statusOf(cluster, 'p')?.state).toBe('Active')
    expect(writer.registry.choose('x.example.com.', 'any')).toEqual({ state: 'missing' })
    expect(created).toEqual(['ns-p example.com.', 'ns-p example.org.'])
  })

  it('gives a zone to the older provider; the other says with which one it collides', async () => {
    const { cluster, created, closed } = await start()
    putSecret(cluster, 's', { ZONES: 'example.com.' })
    putProvider(cluster, 'young', { type: 'memory', secretRef: { name: 's' } }, 2)
    await expect.poll(() => statusOf(cluster, 'young')?.state).toBe('Active')
    putProvider(cluster, 'old', { type: 'memory', secretRef: { name: 's' } }, 1)
    await expect.poll(() => statusOf(cluster, 'old')?.state).toBe('Active')
    await expect.poll(() => statusOf(cluster, 'young')?.message).toBe("duplicate domain 'example.com' with 'ns/old'")
    // Of all that were created only the one in use is open.
    await expect.poll(() => created.length - closed.length).toBe(1)
    expect(closed).not.toContain('ns-old')
  })
})
