/** The writer of `seamark dnslb` on a provider in memory or of the test, and what a reconcile hands to it. */
import { createLogger, systemClock } from '@seamark/kube'
import { BALANCE_DEFAULTS, readLoadBalancer } from '../src/balance/load-balancer.ts'
import { createDnsWriter } from '../src/dnslb/dns-writer.ts'
import { createProviderTypes } from '../src/dnslb/provider-types.ts'
import type { Provider } from '../src/providers/provider.ts'
import { memoryGuardStore } from '../src/records/state/guard-state.ts'

type WriterOptions = Parameters<typeof createDnsWriter>[0]

export async function dnsWriterFixture(provider: Provider, more: Partial<WriterOptions> = {}) {
  const log = createLogger({ level: 'silent' })
  const { publisher, registry } = await createDnsWriter({
    identity: 'ring',
    defaults: BALANCE_DEFAULTS,
    providers: { staticTypes: [] },
    types: createProviderTypes(),
    env: {},
    extraProviders: [provider],
    store: memoryGuardStore(),
    isDryRun: false,
    clock: systemClock,
    log,
    claimedNames: async () => new Set(),
    isReady: () => true,
    ...more,
  })
  const { signal } = new AbortController()
  const context = { clock: systemClock, signal, log } as unknown as Parameters<typeof publisher.observe>[2]
  return { publisher, registry, context }
}

/** The load balancer `web/LABEL` of `LABEL.example.test`. */
export function loadBalancerFixture(label: string) {
  const loadBalancer = {
    metadata: { namespace: 'web', name: label },
    spec: { DNSName: `${label}.example.test` },
  }
  const read = readLoadBalancer(loadBalancer, BALANCE_DEFAULTS)
  if (!('settings' in read)) throw new Error(read.message)
  return { loadBalancer, settings: read.settings }
}
