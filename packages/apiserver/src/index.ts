/**
 * An embedded Kubernetes API server.
 *
 *     const server = createApiServer()
 *     const { url } = await server.listen()
 *     const response = await server.fetch('/api/v1/namespaces')
 *     await server.close()
 *
 * Several logical clusters share one server; the first is at the root, the others under `/clusters/<name>`.
 */
import { type KeyObject, randomUUID } from 'node:crypto'
import type { AdmissionHook } from './admission/admission.ts'
import { admin, anonymous } from './auth/authenticate.ts'
import { loadEngine } from './cel/engine.ts'
import { type Clock, systemClock } from './clock.ts'
import { Cluster, type ClusterOptions } from './cluster.ts'
import { type Credentials, openCredentials } from './data/credentials-file.ts'
import type { DataDirectory, RestoredCluster } from './data/data-directory.ts'
import {
  type Admit,
  type ApiRequest,
  type ApiResponse,
  statusResponse,
  textResponse,
  type UserInfo,
} from './exchange/exchange.ts'
import type { Faults } from './faults.ts'
import { issueServingCredentials } from './http/credentials.ts'
import { type Listener, listen, type ListenOptions, type TlsOptions } from './http/http-server.ts'
import { MAX_BODY_BYTES } from './http/request-body.ts'
import { createFetch, type InProcessFetch } from './http/in-process.ts'
import { requestTooLarge } from './exchange/status.ts'
import { uidFrom } from './validation/names.ts'

export type { AdmissionHook, AdmissionReview, Refusal } from './admission/admission.ts'
export type { Clock, Timer } from './clock.ts'
export type { Cluster } from './cluster.ts'
export { DataDirectoryError } from './data/data-directory-error.ts'
export type { ApiRequest, ApiResponse, UserInfo } from './exchange/exchange.ts'
export type { ErrorFault, Faults, RequestMatch, WatchMatch } from './faults.ts'
export type { Listener, ListenOptions, TlsOptions } from './http/http-server.ts'
export type { InProcessFetch } from './http/in-process.ts'
export { type KubeconfigRequest, newToken, writeKubeconfig } from './http/credentials.ts'

export interface ApiServerOptions {
  /** @default the system clock */
  readonly clock?: Clock
  /** In [0, 1). The UIDs of objects derive from it too. @default Math.random, and UIDs of node:crypto */
  readonly random?: () => number
  /** Functions that may change or reject writes. */
  readonly admission?: readonly AdmissionHook[]
  /** Bearer tokens and their users. */
  readonly tokens?: ReadonlyMap<string, UserInfo>
  /** The user of requests without credentials. @default the administrator */
  readonly anonymous?: 'admin' | 'anonymous' | 'refused'
  /**
   * The functions of kube-controller-manager: garbage collection, namespace deletion, default ServiceAccounts. @default
   * true
   */
  readonly controllers?: boolean
  /** Whether RBAC is enforced. Access reviews always use it. @default AlwaysAllow */
  readonly authorization?: 'AlwaysAllow' | 'RBAC'
  /**
   * Base URL of a Service, for webhooks that name one: cluster addresses are not routed. @default no Service is
   * reachable
   */
  readonly resolveService?: (namespace: string, name: string, port: number) => string | undefined
  /** Maximum number of changes retained for watches to resume from. @default 100 000 */
  readonly historyLimit?: number
  /** Maximum bytes of the changes retained for watches to resume from. @default 256 MiB */
  readonly historyBytes?: number
  /** Maximum bytes of all objects. @default 2 GiB, as etcd */
  readonly storeBytes?: number
  /** Called with internal errors of the server. @default they are ignored */
  readonly onError?: (error: unknown) => void
  /** Objects and credentials that survive restarts. @default in memory only */
  readonly data?: ServerData
}

/** An open data directory; see `openServerData`. */
export interface ServerData {
  readonly directory: DataDirectory
  readonly credentials: Credentials
  /** By logical cluster. */
  readonly tokenKeys: ReadonlyMap<string, KeyObject>
}

/** Opens a data directory for the root and the named logical clusters. Throws DataDirectoryError with what to do. */
export async function openServerData(path: string, clusters: readonly string[] = []): Promise<ServerData> {
  // Imported here: the database is a native library, and a server in memory starts without it.
  const { DataDirectory: Directory } = await import('./data/data-directory.ts')
  const directory = await Directory.open(path)
  try {
    const credentials = await openCredentials(path, Date.now())
    const tokenKeys = new Map<string, KeyObject>()
    for (const cluster of ['', ...clusters]) {
      tokenKeys.set(cluster, await credentials.tokenKey(cluster))
      if (hasRules(directory.restored(cluster))) await loadEngine()
    }
    return { directory, credentials, tokenKeys }
  } catch (error) {
    await directory.close()
    throw error
  }
}

/** Definitions are served when the server is created, which cannot wait for the engine of their rules. */
function hasRules(restored: RestoredCluster | undefined): boolean {
  return (restored?.objects ?? []).some(
    ({ stored }) => stored.kind === 'CustomResourceDefinition' && stored.body.includes('"x-kubernetes-validations"'),
  )
}

export interface ServerListenOptions extends Omit<ListenOptions, 'tls'> {
  readonly tls?: TlsOptions | 'self-signed'
}

export interface ServerListener extends Listener {
  /** CA certificate that clients must trust, PEM; undefined without TLS. */
  readonly caPem: string | undefined
}

export interface ApiServer {
  /** The cluster at the root. */
  readonly cluster: Cluster
  readonly clusters: ReadonlyMap<string, Cluster>
  /** Adds a logical cluster, served under `/clusters/<name>`. */
  addCluster(name: string): Cluster
  handle(request: ApiRequest): Promise<ApiResponse>
  /** The in-process transport, as the administrator. */
  readonly fetch: InProcessFetch
  /** The in-process transport of another user. */
  fetchAs(user: UserInfo): InProcessFetch
  /** Fault injection of the root cluster. */
  readonly faults: Faults
  /** Opens a port. `tls: 'self-signed'` issues a serving certificate; the result contains its CA. */
  listen(options?: ServerListenOptions): Promise<ServerListener>
  close(): Promise<void>
}

export function createApiServer(options: ApiServerOptions = {}): ApiServer {
  const clock = options.clock ?? systemClock
  const random = options.random ?? Math.random
  const anonymousUser = { admin, anonymous, refused: undefined }[options.anonymous ?? 'admin']
  const users = { tokens: options.tokens ?? new Map<string, UserInfo>(), anonymous: anonymousUser }
  const clusters = new Map<string, Cluster>()
  const listeners: Listener[] = []
  let rootCa = ''

  const addCluster = (name: string): Cluster => {
    const cluster = new Cluster({
      name,
      clock,
      random,
      newUid: options.random === undefined ? randomUUID : () => uidFrom(random),
      users,
      admission: options.admission ?? [],
      hasControllers: options.controllers ?? true,
      isAuthorizing: options.authorization === 'RBAC',
      rootCa: () => rootCa,
      resolveService: options.resolveService ?? (() => undefined),
      onError: options.onError ?? (() => undefined),
      ...(options.historyLimit !== undefined && { historyLimit: options.historyLimit }),
      ...(options.historyBytes !== undefined && { historyBytes: options.historyBytes }),
      ...clusterData(options.data, name),
      ...(options.storeBytes !== undefined && { storeBytes: options.storeBytes }),
    })
    clusters.set(name, cluster)
    return cluster
  }
  const root = addCluster('')

  const admit: Admit = (head) => {
    if (!head.path.startsWith('/clusters/')) return root.admit(head)
    const rest = head.path.slice('/clusters/'.length)
    const slash = rest.indexOf('/')
    const name = slash < 0 ? rest : rest.slice(0, slash)
    const cluster = clusters.get(name)
    if (cluster === undefined || name === '') return textResponse(404, '404 page not found\n')
    return cluster.admit({ ...head, path: slash < 0 ? '/' : rest.slice(slash) })
  }

  const handle = async (request: ApiRequest): Promise<ApiResponse> => {
    const { body, ...head } = request
    const admitted = admit(head)
    if (typeof admitted !== 'function') return admitted
    return body.length > MAX_BODY_BYTES ? statusResponse(requestTooLarge(MAX_BODY_BYTES).status) : await admitted(body)
  }

  return {
    cluster: root,
    clusters,
    addCluster,
    handle,
    fetch: createFetch(handle, admin),
    fetchAs: (user) => createFetch(handle, user),
    faults: root.faults,
    async listen(listenOptions = {}) {
      const { tls: tlsOption, ...rest } = listenOptions
      const tls =
        tlsOption === 'self-signed'
          ? issueServingCredentials(rest.host ?? '127.0.0.1', clock.now(), options.data?.credentials.authority).tls
          : tlsOption
      if (tls !== undefined) rootCa = tls.ca
      const opened = await listen(admit, { ...rest, ...(tls !== undefined && { tls }) })
      const listener: ServerListener = { ...opened, caPem: tls?.ca }
      listeners.push(listener)
      for (const cluster of clusters.values()) cluster.address = `${listener.host}:${listener.port}`
      return listener
    },
    async close() {
      for (const cluster of clusters.values()) cluster.close()
      await Promise.all(listeners.map(async (listener) => await listener.close()))
      await options.data?.directory.close()
    },
  }
}

function clusterData(data: ServerData | undefined, name: string): Pick<ClusterOptions, 'data' | 'tokenKey'> {
  if (data === undefined) return {}
  const { directory, tokenKeys } = data
  const tokenKey = tokenKeys.get(name)
  return {
    data: { durability: directory.durabilityOf(name), restored: directory.restored(name) },
    ...(tokenKey !== undefined && { tokenKey }),
  }
}
