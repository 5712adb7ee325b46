/**
 * The manager of an example: with the rights of the ServiceAccount of examples/deploy, the configuration of the example, and
 * a DNS server in place of the one that it names.
 */
import { createDnsServer, createRRset, createZone, fqdn, TsigKey } from '@seamark/dns'
import { type Cluster, configFromText, connect, Secret } from '@seamark/kube'
import { loadConfig, runApp } from '@seamark/operator'
import type { TestEnvironment } from '../publish/test-environment.ts'
import { readExample } from './manifests.ts'

const ORIGIN = fqdn('example.com.')
const ACCOUNT = 'system:serviceaccount:seamark:seamark'
const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:seamark', 'system:authenticated']
/** The address of the DNS server in the examples. */
const EXAMPLE_SERVER = '192.0.2.53:53'

interface ExampleServer {
  readonly address: string
  readonly port: number
}

export interface ExampleManager extends AsyncDisposable {
  readonly server: ExampleServer
  /** Methods of requests that the API server refused with 403. */
  readonly refused: readonly string[]
}

type App = Parameters<typeof runApp>[0]
type Config = Extract<ReturnType<typeof loadConfig>, { ok: true }>['config']

/** `capabilities`: what the manager runs besides records, by the configuration of the example in `file`. */
export async function startExampleManager(
  environment: TestEnvironment,
  file: string,
  capabilities: (config: Config, server: ExampleServer) => Partial<App>,
  flags: Readonly<Record<string, string>> = {},
): Promise<ExampleManager> {
  const stored = (await environment.client.get(Secret, 'seamark/tsig')).data?.['secret'] ?? ''
  const key = new TsigKey('seamark', 'hmac-sha256', Buffer.from(stored, 'base64').toString())
  const zone = createZone(ORIGIN, [
    createRRset(ORIGIN, 'SOA', 60, [`ns.${ORIGIN} admin.${ORIGIN} 1 3600 600 86400 30`]),
    createRRset(ORIGIN, 'NS', 60, [`ns.${ORIGIN}`]),
  ])
  const dns = await createDnsServer({
    zones: [zone],
    listen: [{ address: '127.0.0.1', port: 0 }],
    keys: [key],
    defaultPolicy: { updateKeys: [key.name], transferKeys: [key.name] },
  })
  const server = { address: '127.0.0.1', port: dns.addresses[0]?.port ?? 0 }
  const text = configText(file).replace(EXAMPLE_SERVER, `${server.address}:${server.port}`)
  const loaded = loadConfig({ file: text, flags })
  if (!loaded.ok) throw new Error(loaded.faults.join('; '))
  const { mode, records, leaderElection } = loaded.config
  const refused: string[] = []
  const cluster = await connectAs(environment, refused)
  const stop = new AbortController()
  const done = runApp(
    {
      cluster,
      mode,
      namespace: 'seamark',
      records: { config: records, env: {} },
      leader: { lease: leaderElection.lease, namespace: 'seamark' },
      ...capabilities(loaded.config, server),
    },
    stop.signal,
  )
  return {
    server,
    refused,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await done
      await cluster.close()
      await dns.close()
    },
  }
}

async function connectAs(environment: TestEnvironment, refused: string[]): Promise<Cluster> {
  return connect(configFromText(await environment.userKubeconfig(ACCOUNT, GROUPS)), {
    fieldManager: 'contour-plus',
    observer: {
      request({ method, code }) {
        if (code === '403') refused.push(method)
      },
    },
  })
}

function configText(file: string): string {
  const map = readExample(file).find(({ kind }) => kind === 'ConfigMap') as
    | { data?: Record<string, string> }
    | undefined
  return map?.data?.['config.yaml'] ?? ''
}
