/** An installation with the page: an embedded API server, the manager with load balancing and its DNS server, and readers. */
import { get as getHttp, type IncomingMessage } from 'node:http'
import { get as getHttps } from 'node:https'
import {
  applyDifference,
  type Assets,
  type Beat,
  type Difference,
  dashboardPart,
  type DashboardOptions,
  type State,
} from '@seamark/dashboard'
import {
  type Client,
  type Cluster,
  configFromText,
  connect,
  createLogger,
  CustomResourceDefinition,
  Namespace,
} from '@seamark/kube'
import {
  type AppOptions,
  BalanceConfig,
  DashboardConfig,
  DnsConfig,
  loadBalancerCrds,
  PlanReader,
  playgroundCrds,
  recordsInUse,
  loadConfig,
  runApp,
} from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { type EmbeddedServer, startEmbeddedServer } from '../apiserver/embedded-server.ts'

export const ZONE = 'demo.test'
export const POLL = { timeout: 30_000, interval: 20 }
const NAMESPACE = 'seamark'

const asset = (text: string, type: string) => ({ body: Buffer.from(text), type, etag: `"${text.length}"` })
/** The shell is built by another step; here it is a few words. */
const ASSETS: Assets = {
  html: asset('<!doctype html><title>Seamark</title><script src="/page.js"></script>', 'text/html; charset=utf-8'),
  script: asset('0', 'text/javascript; charset=utf-8'),
  style: asset('*{}', 'text/css; charset=utf-8'),
  icon: asset('<svg/>', 'image/svg+xml'),
}

/** `page` of the options of the manager. */
export function pageFor(
  config: Partial<DashboardConfig> = {},
  others: Partial<DashboardOptions> = {},
): NonNullable<AppOptions['page']> {
  const loaded = loadConfig({ flags: { 'dns-listen': '127.0.0.1:0', 'dns-zones': ZONE } })
  if (!loaded.ok) throw new Error(loaded.faults.join('; '))
  return dashboardPart({
    config: DashboardConfig.parse({ address: '127.0.0.1:0', ...config }),
    version: '0.0.0',
    log: createLogger({ level: 'silent' }),
    capabilities: ['balance', 'dns'],
    dnsServers: [],
    resolver: '',
    plans: ({ manager, options, killSwitch, dns }) =>
      new PlanReader({
        client: manager.client,
        namespace: options().namespace,
        records: recordsInUse(loaded.config),
        dns: { ...loaded.config.dns, zones: dns?.zones().map(({ zone }) => zone) ?? [] },
        mode: 'enforce',
        isPaused: async () => killSwitch.isPaused,
        safety: loaded.config.safety,
        grants: [],
        env: {},
      }),
    assets: ASSETS,
    ...others,
  })
}

export interface PageEnvironment extends PageOfServer {
  readonly server: EmbeddedServer
}

interface PageOfServer extends AsyncDisposable {
  readonly client: Client
  readonly url: string
  /** `127.0.0.1:PORT` of the DNS server. */
  readonly dns: string
}

export async function startPage(
  config: Partial<DashboardConfig> = {},
  others: Partial<DashboardOptions> = {},
  app: Partial<AppOptions> = {},
): Promise<PageEnvironment> {
  const server = await startEmbeddedServer()
  return { ...(await startPageOf(server, config, others, app)), server }
}

/** Ends the server with the page, also when the page does not start. */
export async function startPageOf(
  server: Pick<EmbeddedServer, 'kubeconfig' | 'stop'>,
  config: Partial<DashboardConfig> = {},
  others: Partial<DashboardOptions> = {},
  app: Partial<AppOptions> = {},
): Promise<PageOfServer> {
  const admin = connect(configFromText(server.kubeconfig), { name: 'test', fieldManager: 'test-user' })
  for (const definition of [...loadBalancerCrds(), ...playgroundCrds()])
    await admin.client.create(CustomResourceDefinition, definition)
  await admin.client.create(Namespace, { metadata: { name: NAMESPACE } })
  const cluster: Cluster = connect(configFromText(server.kubeconfig), { name: 'hub', fieldManager: 'contour-plus' })
  const stopping = new AbortController()
  let running: Promise<void> = Promise.resolve()
  const stop = async (): Promise<void> => {
    stopping.abort()
    await running
    await cluster.close()
    await admin.close()
    await server.stop()
  }
  try {
    const ready = new Promise<{ readonly url: string; readonly dns: string }>((resolve, reject) => {
      running = runApp(
        {
          cluster,
          namespace: NAMESPACE,
          mode: 'enforce',
          allowLoopback: true,
          balance: { config: BalanceConfig.parse({ enabled: true }), startThread: proberInThisThread(20) },
          dns: { config: DnsConfig.parse({ listen: ['127.0.0.1:0'], zones: [ZONE] }), env: {} },
          page: pageFor(config, others),
          ...app,
          onReady: ({ page = '', dns: [first = ''] = [] }) => resolve({ url: page, dns: first }),
        },
        stopping.signal,
      )
      running.catch(reject)
    })
    return { client: admin.client, ...(await ready), [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop().catch(() => undefined)
    throw error
  }
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

interface Request {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly ca?: string
}

/** Without any behaviour of a browser: headers and paths as they are given. */
export async function request(
  url: string,
  path: string,
  { method = 'GET', headers = {}, ca }: Request = {},
): Promise<Answer> {
  const response = await open(url, path, { method, headers, ...(ca !== undefined && { ca }) })
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, text }
}

export async function open(
  url: string,
  path: string,
  { method = 'GET', headers = {}, ca }: Request = {},
): Promise<IncomingMessage> {
  const { hostname, port, protocol } = new URL(url)
  const options = { host: hostname, port, path, method, headers, agent: false as const }
  return new Promise((resolve, reject) => {
    const sent =
      protocol === 'https:'
        ? getHttps({ ...options, ...(ca !== undefined && { ca }) }, resolve)
        : getHttp(options, resolve)
    sent.on('error', reject)
  })
}

export async function readState(url: string, given: Request = {}): Promise<State> {
  const { status, text } = await request(url, '/api/v1/state', given)
  if (status !== 200) throw new Error(`${status} ${text}`)
  return JSON.parse(text) as State
}

/** A reader of the stream, as the page is one. */
export class StreamReader {
  readonly response: IncomingMessage
  /** Kinds and ids in the order in which they came. */
  readonly events: { readonly kind: string; readonly id: string | undefined; readonly data: unknown }[] = []
  state: State | undefined
  beat: Beat | undefined
  isEnded = false
  #rest = ''

  constructor(response: IncomingMessage) {
    this.response = response
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => this.#take(chunk))
    response.on('close', () => (this.isEnded = true))
    response.on('error', () => undefined)
  }

  static async open(url: string, lastId?: string, given: Request = {}): Promise<StreamReader> {
    const headers = { ...given.headers, ...(lastId !== undefined && { 'last-event-id': lastId }) }
    return new StreamReader(await open(url, '/api/v1/stream', { ...given, headers }))
  }

  get kinds(): string[] {
    return this.events.map(({ kind }) => kind)
  }

  close(): void {
    this.response.destroy()
  }

  #take(chunk: string): void {
    const parts = `${this.#rest}${chunk}`.split('\n\n')
    this.#rest = parts.pop() ?? ''
    for (const part of parts) {
      const fields = new Map(
        part.split('\n').map((line) => {
          const at = line.indexOf(': ')
          return [line.slice(0, at), line.slice(at + 2)]
        }),
      )
      const data: unknown = JSON.parse(fields.get('data') ?? 'null')
      const kind = fields.get('event') ?? ''
      this.events.push({ kind, id: fields.get('id'), data })
      if (kind === 'snapshot') this.state = data as State
      if (kind === 'difference' && this.state !== undefined)
        this.state = applyDifference(this.state, data as Difference)
      if (kind === 'beat') this.beat = data as Beat
    }
  }
}
