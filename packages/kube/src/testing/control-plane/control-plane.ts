/**
 * A real control plane for tests: etcd and kube-apiserver as child processes, found as envtest finds them (assets.ts).
 *
 * Place in the flow: `await using env = await ControlPlane.start({ crds: 'config/crd' })` in integration and contract
 * tests; `describe.skipIf(ControlPlane.missing() !== undefined)` where the binaries may be absent.
 *
 * Flow: temporary folder (memory-backed if available) → authority and certificates → etcd → kube-apiserver → namespace
 * `default` exists → CRDs installed and served. If another process took a port in the meantime, everything is started
 * again.
 * Guarantees: everything listens on 127.0.0.1; `stop` leaves no process and no file.
 * Caveats: no controller manager runs, so owned objects are not collected, namespaces are not finalised, and
 * EndpointSlices are not created. Harness requests use plain node:https, never the client under test.
 */
import { constants } from 'node:fs'
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuthority, type Authority, type CertificatePair } from '../../certificates.ts'
import type { ClusterConfig } from '../../config/cluster-config.ts'
import { loadConfig } from '../../config/config.ts'
import { findAsset, missingAssets } from './assets.ts'
import { installManifests, waitUntil } from './install.ts'
import { knownFlags } from './known-flags.ts'
import type { LocalWebhook } from './manifests.ts'
import { kubeconfigOf, sendRequest, type Access, type Endpoint, type Reply } from './plane-request.ts'
import { freePorts, startServerProcess, type ServerProcess } from './server-process.ts'

export interface ControlPlaneOptions {
  /** CRD manifests: files, folders of .yaml/.yml/.json, or objects. They are served when `start` resolves. */
  crds?: string | readonly (string | object)[]
  /** Additional kube-apiserver flags, `--name=value`; they replace default ones of the same name. */
  flags?: readonly string[]
  etcdFlags?: readonly string[]
  /** Folder with the binaries, searched after the environment's. */
  assets?: string
  /** Local server for the webhooks of installed CRDs, instead of the Service in their manifest. */
  webhook?: LocalWebhook
}

export interface User extends CertificatePair {
  readonly name: string
}

export interface ControlPlane extends AsyncDisposable {
  /** `https://127.0.0.1:PORT` */
  readonly server: string
  readonly caPem: string
  /** In `system:masters`. Throws for an existing cluster, whose authority is not available. */
  readonly admin: User
  /** Throws for an existing cluster. */
  readonly etcdUrl: string
  /**
   * Issues a client certificate with these groups; its permissions depend on RBAC objects. Rejects where `admin`
   * throws.
   */
  addUser(name: string, groups?: readonly string[]): Promise<User>
  /** A kubeconfig with inline credentials, as JSON (which is YAML). @default the admin's */
  kubeconfig(user?: User): string
  /** Creates or replaces objects; resolves when CRDs are served. */
  install(manifests: string | readonly (string | object)[]): Promise<void>
  /** One request as a user, without the client under test. @default the admin's */
  request(method: string, path: string, body?: unknown, options?: { user?: User; type?: string }): Promise<Reply>
  stop(): Promise<void>
}

const START_ATTEMPTS = 5

export const ControlPlane = {
  /** Why none can be started, or undefined. */
  missing: (assets?: string): string | undefined => (usesExistingCluster() ? undefined : missingAssets(assets)),

  /** With USE_EXISTING_CLUSTER=true: uses the cluster of the environment's kubeconfig instead. */
  async start(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
    if (usesExistingCluster()) return ControlPlane.attach(await loadConfig(), options)
    const missing = missingAssets(options.assets)
    if (missing !== undefined) throw new Error(`cannot start a control plane: ${missing}`)
    let lastError: unknown
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      try {
        return await startOnce(options)
      } catch (error) {
        lastError = error
        if (!String(error).includes('address already in use')) throw error
      }
    }
    throw new Error(`the control plane did not start in ${START_ATTEMPTS} attempts`, { cause: lastError })
  },

  /** Uses a running server, with its current credentials. `stop` leaves the server and installed objects in place. */
  async attach(config: ClusterConfig, options: ControlPlaneOptions = {}): Promise<ControlPlane> {
    const headers = await config.credentials.headers()
    const { ca, cert, key, serverName, insecure } = config.credentials.tls()
    if (config.proxyUrl !== undefined || serverName !== undefined || insecure === true) {
      const why = 'a proxy, tls-server-name and insecure-skip-tls-verify are not supported in tests'
      throw new Error(`cannot use the existing cluster ${config.server}: ${why}`)
    }
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    const plane = controlPlane({
      endpoint: { server: config.server, agent, ...(ca !== undefined && { caPem: ca }) },
      access: {
        name: config.name,
        headers,
        ...(cert !== undefined && key !== undefined && { certPem: cert, keyPem: key }),
      },
      own: undefined,
      stop: once(async () => agent.destroy()),
      webhook: options.webhook,
    })
    try {
      if (options.crds !== undefined) await plane.install(options.crds)
      return plane
    } catch (error) {
      await plane.stop()
      throw error
    }
  },
}

function usesExistingCluster(): boolean {
  return process.env['USE_EXISTING_CLUSTER']?.toLowerCase() === 'true'
}

async function startOnce(options: ControlPlaneOptions): Promise<ControlPlane> {
  const folder = await mkdtemp(join(await temporaryRoot(), 'control-plane-'))
  const servers: ServerProcess[] = []
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const stop = once(async () => {
    agent.destroy()
    for (const server of servers.toReversed()) await server.stop()
    await rm(folder, { recursive: true, force: true })
  })
  try {
    const [clientPort = 0, peerPort = 0, securePort = 0] = await freePorts(3)
    const etcdUrl = `http://127.0.0.1:${clientPort}`
    const server = `https://127.0.0.1:${securePort}`
    const [authority] = await Promise.all([
      writeCertificates(folder),
      startEtcd({ folder, etcdUrl, peerPort, options }).then((etcd) => servers.push(etcd)),
    ])
    const admin = { name: 'admin', ...(await issueUser(authority, 'admin', ['system:masters'])) }
    const endpoint: Endpoint = { server, caPem: authority.certPem, agent }
    servers.push(await startApiServer({ folder, etcdUrl, securePort, options, endpoint, admin }))
    const plane = controlPlane({
      endpoint,
      access: admin,
      own: { authority, admin, etcdUrl },
      stop,
      webhook: options.webhook,
    })
    await waitUntil('namespace default', async () => {
      return (await plane.request('GET', '/api/v1/namespaces/default')).status === 200
    })
    if (options.crds !== undefined) await plane.install(options.crds)
    return plane
  } catch (error) {
    await stop()
    throw error
  }
}

function controlPlane(parts: {
  endpoint: Endpoint
  /** Default access if no user is given. */
  access: Access
  /** Available only for servers started here. */
  own: { authority: Authority; admin: User; etcdUrl: string } | undefined
  stop: () => Promise<void>
  webhook: LocalWebhook | undefined
}): ControlPlane {
  const { endpoint, access, stop } = parts
  const own = (what: string) => {
    if (parts.own !== undefined) return parts.own
    throw new Error(
      `${endpoint.server} was there before this test: it has no ${what}; unset USE_EXISTING_CLUSTER for that`,
    )
  }
  const plane: ControlPlane = {
    server: endpoint.server,
    caPem: endpoint.caPem ?? '',
    get admin() {
      return own('admin with a certificate of ours').admin
    },
    get etcdUrl() {
      return own('etcd to reach').etcdUrl
    },
    addUser: async (name, groups = []) => {
      return { name, ...(await issueUser(own('authority that makes users').authority, name, groups)) }
    },
    kubeconfig: (user) => kubeconfigOf(endpoint, user ?? access),
    request: async (method, path, body, { user, type } = {}) => {
      return sendRequest(endpoint, user ?? access, method, path, body, type)
    },
    install: async (manifests) => installManifests(async (...call) => plane.request(...call), manifests, parts.webhook),
    stop,
    [Symbol.asyncDispose]: stop,
  }
  return plane
}

async function startEtcd(given: {
  folder: string
  etcdUrl: string
  peerPort: number
  options: ControlPlaneOptions
}): Promise<ServerProcess> {
  const { folder, etcdUrl, peerPort, options } = given
  const peerUrl = `http://127.0.0.1:${peerPort}`
  const command = findAsset('etcd', options.assets) ?? 'etcd'
  return startServerProcess({
    ...processOptions(folder),
    command,
    flags: mergeFlags(
      [
        `--data-dir=${join(folder, 'etcd')}`,
        `--listen-client-urls=${etcdUrl}`,
        `--advertise-client-urls=${etcdUrl}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=default=${peerUrl}`,
        // kube-apiserver does not request progress from etcd before 3.4.31; without it a WatchList at "" blocks and
        // fails.
        ...(await supportedFlags(command, [
          '--experimental-watch-progress-notify-interval=200ms',
          '--unsafe-no-fsync=true',
          '--log-level=error',
          '--logger=zap',
        ])),
      ],
      options.etcdFlags,
    ),
    isReady: async () => (await fetch(`${etcdUrl}/health`)).ok,
  })
}

async function startApiServer(given: {
  folder: string
  etcdUrl: string
  securePort: number
  options: ControlPlaneOptions
  endpoint: Endpoint
  admin: User
}): Promise<ServerProcess> {
  const { folder, etcdUrl, securePort, options, endpoint, admin } = given
  const command = findAsset('kube-apiserver', options.assets) ?? 'kube-apiserver'
  return startServerProcess({
    ...processOptions(folder),
    command,
    flags: mergeFlags(
      [
        `--etcd-servers=${etcdUrl}`,
        '--bind-address=127.0.0.1',
        '--advertise-address=127.0.0.1',
        `--secure-port=${securePort}`,
        `--cert-dir=${folder}`,
        `--client-ca-file=${join(folder, 'client-ca.crt')}`,
        `--service-account-issuer=${endpoint.server}/`,
        `--service-account-key-file=${join(folder, 'sa-signer.crt')}`,
        `--service-account-signing-key-file=${join(folder, 'sa-signer.key')}`,
        '--service-cluster-ip-range=10.0.0.0/24',
        '--authorization-mode=RBAC',
        '--disable-admission-plugins=ServiceAccount',
        ...(await supportedFlags(command, [
          '--allow-privileged=true',
          '--endpoint-reconciler-type=none',
          '--profiling=false',
        ])),
      ],
      options.flags,
    ),
    isReady: async () => (await sendRequest(endpoint, admin, 'GET', '/healthz')).status === 200,
  })
}

function processOptions(folder: string) {
  return {
    folder,
    startTimeoutMs: secondsFromEnv('KUBEBUILDER_CONTROLPLANE_START_TIMEOUT', 20) * 1000,
    stopTimeoutMs: secondsFromEnv('KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT', 20) * 1000,
    attachOutput: process.env['KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT'] === 'true',
  }
}

/** envtest uses Go durations; plain seconds are accepted too. */
function secondsFromEnv(name: string, fallback: number): number {
  const match = /^(\d+(?:\.\d+)?)(s|m)?$/.exec(process.env[name] ?? '')
  return match === null ? fallback : Number(match[1]) * (match[2] === 'm' ? 60 : 1)
}

/** For flags that a release may lack. Flags that tests rely on are passed unconditionally. */
async function supportedFlags(command: string, flags: readonly string[]): Promise<string[]> {
  const known = await knownFlags(command)
  return flags.filter((flag) => known.has(nameOfFlag(flag)))
}

const nameOfFlag = (flag: string) => flag.split('=', 1)[0] ?? flag

function mergeFlags(defaults: readonly string[], overrides: readonly string[] = []): string[] {
  const given = new Set(overrides.map(nameOfFlag))
  return [...defaults.filter((flag) => !given.has(nameOfFlag(flag))), ...overrides]
}

/** Memory-backed if possible: etcd syncs every write, which dominates the duration of a test on a disk. */
async function temporaryRoot(): Promise<string> {
  const memory = '/dev/shm'
  return access(memory, constants.W_OK).then(
    () => memory,
    () => tmpdir(),
  )
}

async function writeCertificates(folder: string): Promise<Authority> {
  const authority = await createAuthority({ commonName: 'control-plane-ca' })
  const serving = await authority.issue({
    commonName: 'kube-apiserver',
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  })
  const signer = await authority.issue({ commonName: 'service-accounts', usages: 'both' })
  const files = {
    'client-ca.crt': authority.certPem,
    'apiserver.crt': serving.certPem,
    'apiserver.key': serving.keyPem,
    'sa-signer.crt': signer.certPem,
    'sa-signer.key': signer.keyPem,
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 })
  return authority
}

async function issueUser(authority: Authority, name: string, groups: readonly string[]): Promise<CertificatePair> {
  return authority.issue({ commonName: name, organizations: groups, usages: 'client' })
}

function once(task: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return async () => (running ??= task())
}
