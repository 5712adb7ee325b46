/** A manager with records in this process, what it wrote and its metrics; and the objects that configure it. */
import { type Client, ConfigMap } from '@seamark/kube'
import { CONFIGURATION_OBJECT, DNSEndpoint, type Provider, RecordsConfig, runApp } from '@seamark/operator'
import type { TestEnvironment } from '../publish/test-environment.ts'

export interface App {
  readonly writes: { count: number }
  /** Settles when it ended: by `stop`, or by itself. */
  readonly ended: Promise<void>
  metrics(): Promise<string>
  stop(): Promise<void>
}

/** Runs a manager with records on, on providers given or configured; resolves when it listens. */
export async function startApp(
  environment: TestEnvironment,
  providers: readonly Provider[],
  more: Partial<Parameters<typeof runApp>[0]> = {},
  configured: readonly object[] = [],
): Promise<App> {
  const { cluster, writes } = environment.connect('contour-plus')
  const config = RecordsConfig.parse({
    enabled: true,
    owner: 'sync-test',
    dnsEndpoints: { enabled: true, annotationFilter: 'team!=other' },
    providers: configured,
  })
  const stopping = new AbortController()
  let address = ''
  let ended: Promise<void> = Promise.resolve()
  const ready = new Promise<void>((resolve, reject) => {
    const running = runApp(
      {
        cluster,
        mode: 'enforce',
        namespace: 'seamark',
        records: { config, env: {}, providers },
        metrics: '127.0.0.1:0',
        onReady: ({ metrics = '' }) => {
          address = metrics
          resolve()
        },
        ...more,
      },
      stopping.signal,
    )
    running.catch(reject)
    ended = running
  })
  await ready
  return {
    writes,
    metrics: async () => (await fetch(`http://${address}/metrics`)).text(),
    ended,
    async stop() {
      stopping.abort()
      await ended
    },
  }
}

export const endpoint = (
  name: string,
  targets: string[],
  annotations: Record<string, string> = {},
  dnsName = `${name}.example.test`,
): DNSEndpoint => ({
  metadata: { name, namespace: 'web', annotations },
  spec: { endpoints: [{ dnsName, recordType: 'A', recordTTL: 60, targets }] },
})

export async function setTargets(client: Client, name: string, targets: string[]): Promise<void> {
  const patch = [{ op: 'replace', path: '/spec/endpoints/0/targets', value: targets }]
  await client.patch(DNSEndpoint, `web/${name}`, 'json', patch)
}

export async function annotate(client: Client, annotations: Record<string, string | null>): Promise<void> {
  const key = `seamark/${CONFIGURATION_OBJECT}`
  if ((await client.find(ConfigMap, key)) === undefined)
    await client.create(ConfigMap, { metadata: { name: CONFIGURATION_OBJECT, namespace: 'seamark' } })
  await client.patch(ConfigMap, key, 'merge', { metadata: { annotations } })
}
