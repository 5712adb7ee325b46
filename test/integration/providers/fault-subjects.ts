/**
 * Every provider with a service behind it that can be made to fail: the same faults for one in memory, our own server,
 * BIND, Knot, PowerDNS, Route 53 (strict fake, moto) and a webhook, so that one list of rows runs on all of them.
 */
import { createDnsServer, createZone, fqdn, createRRset, TsigKey } from '@seamark/dns'
import { needs } from '@seamark/kit'
import {
  awsProvider,
  embeddedProvider,
  memoryProvider,
  powerdnsProvider,
  type Provider,
  ProviderError,
  type ProviderZone,
  rfc2136Provider,
  startWebhookServer,
  webhookProvider,
} from '@seamark/operator'
import { type Key, type Peer, startBind, startKnot, type ZoneText } from '../dns/peers.ts'
import { type Faults, isDnsUpdate, isHttpWrite, startFaultProxy } from './fault-proxy.ts'
import { startMoto } from './moto.ts'
import { startPowerdnsApi } from './powerdns-api.ts'
import { startRoute53Fake } from './route53-fake.ts'

export const ZONE = 'a.test.'

/** In every credential; nothing that is printed may hold it. */
const CANARY = 'canary'
const key: Key = {
  name: 'seamark',
  algorithm: 'hmac-sha256',
  secret: Buffer.from(`${CANARY}-tsig-secret-of-32-octets!`).toString('base64'),
}
const awsCredentials = { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: `${CANARY}-secret-access-key` }

export interface FaultSubject {
  /** Through the faults. */
  readonly provider: Provider
  /** Bypasses them: what is really in the zone. */
  readonly direct: Provider
  readonly zone: ProviderZone
  readonly faults: Faults
  /** What the provider must never print. */
  readonly secrets: readonly string[]
  /** The same provider, through the faults, as a manager's configuration names it, and its secrets by variable. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
  /** The service throttles the next changes. */
  throttle?(times: number): void
  /** The zone takes this many more record sets. */
  fill?(room: number): Promise<void>
  /** An empty zone, where what stood there before must not be known any more; `zone` is another one then. */
  renew?(): Promise<void>
  /** The zone is no longer there. */
  vanish?(): Promise<void>
  close(): Promise<void>
}

/** Refuse a bad value, throttle, be full, lose its zone, hold a generated zone of the records of others. */
export type Ability = 'refuse' | 'throttle' | 'fill' | 'vanish' | 'hold-foreign'

interface FaultSubjectKind {
  readonly title: string
  readonly isAvailable: boolean
  /** What the service cannot be brought to do. */
  readonly never?: readonly Ability[]
  /** How many generated zones are quick enough. */
  readonly zones: number
  start(): Promise<FaultSubject>
}

const zone = { id: ZONE, name: ZONE }
const zoneText = (origin: string): ZoneText => ({
  origin,
  text: `$ORIGIN ${origin}\n$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`,
})

/** Faults for what runs in this process. */
function withFaults(inner: () => Provider): { provider: Provider; faults: Faults } {
  const faults: Faults = { mode: 'pass', counts: { requests: 0, writes: 0 }, writesLeft: undefined }
  const never = async (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true }),
    )
  const arrive = async (signal: AbortSignal, isWrite: boolean): Promise<void> => {
    faults.counts.requests++
    if (isWrite) faults.counts.writes++
    if (faults.mode === 'hang') await never(signal)
    if (faults.mode === 'down' || (faults.mode === 'refuse-writes' && isWrite))
      throw new ProviderError('ProviderUnavailable', 'later', 'connection refused')
  }
  const provider: Provider = {
    ...inner(),
    async zones(signal) {
      await arrive(signal, false)
      return inner().zones(signal)
    },
    async read(at, names, signal) {
      await arrive(signal, false)
      return inner().read(at, names, signal)
    },
    async apply(at, batch, signal) {
      await arrive(signal, true)
      await inner().apply(at, batch, signal)
      if (faults.mode !== 'lose-reply') return
      faults.mode = 'pass'
      await never(signal)
    },
  }
  return { provider, faults }
}

async function startMemory(): Promise<FaultSubject> {
  let inner: Provider = memoryProvider({ zones: [ZONE] })
  const { provider, faults } = withFaults(() => inner)
  return {
    provider,
    faults,
    get direct() {
      return inner
    },
    zone,
    secrets: [],
    async vanish() {
      inner = memoryProvider({ zones: [] })
    },
    close: async () => {},
  }
}

async function startDnsServer() {
  const sets = [
    createRRset(ZONE, 'SOA', 300, [`ns1.${ZONE} hostmaster.${ZONE} 1 3600 600 86400 60`]),
    createRRset(ZONE, 'NS', 300, [`ns1.${ZONE}`]),
  ]
  return createDnsServer({ zones: [createZone(fqdn(ZONE), sets)], listen: [{ address: '127.0.0.1', port: 0 }] })
}

async function startEmbedded(): Promise<FaultSubject> {
  const server = await startDnsServer()
  const inner = embeddedProvider({ server })
  const { provider, faults } = withFaults(() => inner)
  return {
    provider,
    faults,
    direct: inner,
    zone,
    secrets: [],
    vanish: async () => server.remove(fqdn(ZONE)),
    close: async () => server.close(),
  }
}

const byUpdate =
  (start: (zones: readonly ZoneText[], keys: readonly Key[]) => Promise<Peer>) => async (): Promise<FaultSubject> => {
    const peer = await start([zoneText(ZONE)], [key])
    const other = await start([zoneText('other.test.')], [key])
    const proxy = await startFaultProxy({ address: '127.0.0.1', port: peer.address.port ?? 53 }, isDnsUpdate)
    const tsig = new TsigKey(key.name, key.algorithm, key.secret)
    const options = { key: tsig, zones: [ZONE], requestsPerSecond: 1000 }
    const provider = rfc2136Provider({ name: 'ddns', server: proxy.address, timeoutMs: 1000, ...options })
    const direct = rfc2136Provider({ name: 'direct', server: peer.address, ...options })
    return {
      provider,
      direct,
      zone,
      faults: proxy,
      secrets: [key.secret],
      config: {
        name: 'ddns',
        type: 'rfc2136',
        server: `127.0.0.1:${proxy.address.port}`,
        zones: [ZONE],
        key: { name: key.name, secretFrom: { env: 'TSIG_SECRET' } },
      },
      env: { TSIG_SECRET: key.secret },
      async vanish() {
        proxy.target = { address: '127.0.0.1', port: other.address.port ?? 53 }
      },
      async close() {
        await Promise.all([provider.close?.(), direct.close?.()])
        await proxy.close()
        await Promise.all([peer.close(), other.close()])
      },
    }
  }

const TOO_MANY = Buffer.from(
  'HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n',
)

async function proxyOf(url: string) {
  const { hostname, port } = new URL(url)
  const proxy = await startFaultProxy({ address: hostname, port: Number(port) }, isHttpWrite)
  return { proxy, url: `http://127.0.0.1:${proxy.address.port}` }
}

async function startPowerdns(): Promise<FaultSubject> {
  const server = await startPowerdnsApi([ZONE])
  const { proxy, url } = await proxyOf(server.url)
  return {
    provider: powerdnsProvider({ name: 'pdns', url, apiKey: server.apiKey, requestsPerSecond: 1000 }),
    direct: powerdnsProvider({ name: 'direct', url: server.url, apiKey: server.apiKey }),
    zone,
    faults: proxy,
    secrets: [server.apiKey],
    config: { name: 'pdns', type: 'powerdns', url, apiKeyFrom: { env: 'POWERDNS_KEY' } },
    env: { POWERDNS_KEY: server.apiKey },
    throttle: (times) => void proxy.canned.push(...Array.from({ length: times }, () => TOO_MANY)),
    async vanish() {
      const headers = { 'x-api-key': server.apiKey }
      const path = `${server.url}/api/v1/servers/localhost/zones/${ZONE}`
      const { status } = await fetch(path, { method: 'DELETE', headers })
      if (status !== 204) throw new Error(`the zone was not deleted: HTTP ${status}`)
    },
    async close() {
      await proxy.close()
      await server.close()
    },
  }
}

async function startStrictRoute53(): Promise<FaultSubject> {
  const fake = await startRoute53Fake([{ id: 'Z1', name: ZONE }])
  const { proxy, url } = await proxyOf(fake.endpoint)
  const options = { credentials: awsCredentials, requestsPerSecond: 100 }
  const provider = awsProvider({ name: 'aws', endpoint: url, ...options })
  const direct = awsProvider({ name: 'direct', endpoint: fake.endpoint, ...options })
  return {
    provider,
    direct,
    zone: { id: 'Z1', name: ZONE, visibility: 'public' },
    faults: proxy,
    secrets: [awsCredentials.secretAccessKey],
    config: {
      name: 'aws',
      type: 'aws',
      endpoint: url,
      credentials: { accessKeyIdFrom: { env: 'AWS_ID' }, secretAccessKeyFrom: { env: 'AWS_SECRET' } },
    },
    env: { AWS_ID: awsCredentials.accessKeyId, AWS_SECRET: awsCredentials.secretAccessKey },
    throttle: (times) => void (fake.throttleNext = times),
    fill: async (room) => void (fake.recordQuota = (fake.zones.get('Z1')?.sets.size ?? 0) + room),
    vanish: async () => void fake.zones.delete('Z1'),
    async close() {
      await Promise.all([provider.close?.(), direct.close?.()])
      await proxy.close()
      await fake.close()
    },
  }
}

async function startMotoRoute53(): Promise<FaultSubject> {
  const moto = await startMoto(ZONE, awsCredentials)
  const { proxy, url } = await proxyOf(moto.endpoint)
  const options = { credentials: awsCredentials, requestsPerSecond: 100 }
  // moto keeps half a batch and takes a CREATE of what exists: it serves as a service without transactions.
  const lax = (provider: Provider): Provider => ({
    ...provider,
    capabilities: { ...provider.capabilities, isAtomic: false, comparesAndSwaps: false },
  })
  const provider = awsProvider({ name: 'aws', endpoint: url, ...options })
  const direct = awsProvider({ name: 'direct', endpoint: moto.endpoint, ...options })
  return {
    provider: lax(provider),
    direct: lax(direct),
    get zone() {
      return { id: moto.zoneId, name: ZONE, visibility: 'public' as const }
    },
    faults: proxy,
    // moto refuses to create what it ever created, also when it was deleted since (providers-route53.test.ts).
    renew: async () => moto.renewZone(),
    vanish: async () => moto.removeZone(),
    secrets: [awsCredentials.secretAccessKey],
    async close() {
      await Promise.all([provider.close?.(), direct.close?.()])
      await proxy.close()
      await moto.close()
    },
  }
}

async function startWebhook(): Promise<FaultSubject> {
  const server = await startDnsServer()
  const direct = embeddedProvider({ server })
  const webhook = await startWebhookServer({ provider: direct, listen: { address: '127.0.0.1', port: 0 } })
  const { proxy, url } = await proxyOf(webhook.url)
  return {
    provider: webhookProvider({ name: 'webhook', url, requestsPerSecond: 1000 }),
    direct,
    zone,
    faults: proxy,
    secrets: [],
    throttle: (times) => void proxy.canned.push(...Array.from({ length: times }, () => TOO_MANY)),
    vanish: async () => server.remove(fqdn(ZONE)),
    async close() {
      await proxy.close()
      await webhook.close()
      await server.close()
    },
  }
}

export const faultSubjects: readonly FaultSubjectKind[] = [
  { title: 'memory', isAvailable: true, never: ['refuse', 'throttle', 'fill'], zones: 500, start: startMemory },
  { title: 'our own server', isAvailable: true, never: ['throttle', 'fill'], zones: 500, start: startEmbedded },
  {
    title: 'BIND',
    isAvailable: needs('named'),
    never: ['throttle', 'fill'],
    zones: 40,
    start: byUpdate(async (zones, keys) => startBind(zones, keys)),
  },
  {
    title: 'Knot',
    isAvailable: needs('knotd'),
    never: ['throttle', 'fill'],
    zones: 10,
    start: byUpdate(async (zones, keys) => startKnot(zones, keys)),
  },
  {
    title: 'PowerDNS',
    isAvailable: needs('pdns_server', 'sqlite3'),
    never: ['fill'],
    zones: 10,
    start: startPowerdns,
  },
  { title: 'Route 53, a strict fake', isAvailable: true, zones: 40, start: startStrictRoute53 },
  {
    title: 'Route 53, moto',
    isAvailable: needs('moto_server'),
    never: ['refuse', 'throttle', 'fill'],
    zones: 20,
    start: startMotoRoute53,
  },
  { title: 'a webhook', isAvailable: true, never: ['fill'], zones: 40, start: startWebhook },
]
