/**
 * A real control plane for tests: etcd and kube-apiserver as child processes, found as envtest finds them (assets.ts).
 *
 * Place in the flow: `await using env = await ControlPlane.start({ crds: 'config/crd' })` in integration and contract
 * tests; `describe.skipIf(ControlPlane.missing() !== undefined)` where the binaries may be absent.
 *
 * Flow: temporary folder (memory-backed where there is one) → authority and certificates → etcd → kube-apiserver →
 * namespace `default` is there → CRDs installed and served. A port that somebody took meanwhile: all of it again.
 * Guarantees: everything listens on 127.0.0.1; `stop` leaves no process and no file behind.
 * Caveats: no controller manager runs, so nothing collects owned objects, ends a namespace that is being deleted, or
 * makes EndpointSlices. Harness requests go over plain node:https, never through the client under test.
 */
import { constants } from 'node:fs'
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createAuthority, type Authority, type CertificatePair } from '../certificates.ts'
import { findAsset, missingAssets } from './assets.ts'
import { apiPathOf, readManifests, rewriteWebhooks, type LocalWebhook, type Manifest } from './manifests.ts'
import { freePorts, startServerProcess, type ServerProcess } from './server-process.ts'

export interface ControlPlaneOptions {
  /** CRD manifests: files, folders of .yaml/.yml/.json, or objects. They are served when `start` resolves. */
  crds?: string | readonly (string | object)[]
  /** More kube-apiserver flags, `--name=value`; one of ours with the same name gives way. */
  flags?: readonly string[]
  etcdFlags?: readonly string[]
  /** Folder with the binaries, after the environment's. */
  assets?: string
  /** Where webhooks of installed CRDs are served on this machine, instead of the Service their manifest names. */
  webhook?: LocalWebhook
}

export interface User extends CertificatePair {
  readonly name: string
}

export interface Reply {
  status: number
  body: unknown
}

export interface ControlPlane extends AsyncDisposable {
  /** `https://127.0.0.1:PORT` */
  readonly server: string
  readonly caPem: string
  /** In `system:masters`. */
  readonly admin: User
  readonly etcdUrl: string
  /** Makes a client certificate with these groups; what it may do is up to RBAC objects. */
  addUser(name: string, groups?: readonly string[]): Promise<User>
  /** A kubeconfig with inline credentials, as JSON (which is YAML). @default the admin's */
  kubeconfig(user?: User): string
  /** Creates or replaces objects; CRDs are waited for until they are served. */
  install(manifests: string | readonly (string | object)[]): Promise<void>
  /** One request as a user, past the client under test. @default the admin's */
  request(method: string, path: string, body?: unknown, options?: { user?: User; type?: string }): Promise<Reply>
  stop(): Promise<void>
}

const startAttempts = 5

export const ControlPlane = {
  /** Why none can be started here, or undefined. */
  missing: (assets?: string): string | undefined => missingAssets(assets),

  async start(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
    const missing = missingAssets(options.assets)
    if (missing !== undefined) throw new Error(`cannot start a control plane: ${missing}`)
    let lastError: unknown
    for (let attempt = 0; attempt < startAttempts; attempt++) {
      try {
        return await startOnce(options)
      } catch (error) {
        lastError = error
        if (!String(error).includes('address already in use')) throw error
      }
    }
    throw new Error(`the control plane did not start in ${startAttempts} attempts`, { cause: lastError })
  },
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
    const reach = { server, caPem: authority.certPem, agent }
    servers.push(await startApiServer({ folder, etcdUrl, securePort, options, reach, admin }))
    const plane = controlPlane({ reach, authority, admin, etcdUrl, stop, webhook: options.webhook })
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

interface Reach {
  server: string
  caPem: string
  agent: Agent
}

function controlPlane(parts: {
  reach: Reach
  authority: Authority
  admin: User
  etcdUrl: string
  stop: () => Promise<void>
  webhook: LocalWebhook | undefined
}): ControlPlane {
  const { reach, authority, admin, etcdUrl, stop } = parts
  const plane: ControlPlane = {
    server: reach.server,
    caPem: reach.caPem,
    admin,
    etcdUrl,
    addUser: async (name, groups = []) => ({ name, ...(await issueUser(authority, name, groups)) }),
    kubeconfig: (user = admin) => kubeconfigOf(reach, user),
    request: async (method, path, body, { user = admin, type } = {}) => {
      return sendRequest(reach, user, method, path, body, type)
    },
    async install(manifests) {
      const objects = await readManifests(manifests)
      const local = parts.webhook
      for (const object of objects) await put(plane, local === undefined ? object : rewriteWebhooks(object, local))
      await Promise.all(objects.filter((object) => object.kind === 'CustomResourceDefinition').map(untilServed(plane)))
    },
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
  return startServerProcess({
    ...processOptions(folder),
    command: findAsset('etcd', options.assets) ?? 'etcd',
    flags: mergeFlags(
      [
        `--data-dir=${join(folder, 'etcd')}`,
        `--listen-client-urls=${etcdUrl}`,
        `--advertise-client-urls=${etcdUrl}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=default=${peerUrl}`,
        // kube-apiserver asks etcd before 3.4.31 for no progress; without it a WatchList at "" waits and fails.
        '--experimental-watch-progress-notify-interval=200ms',
        '--log-level=error',
        '--logger=zap',
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
  reach: Reach
  admin: User
}): Promise<ServerProcess> {
  const { folder, etcdUrl, securePort, options, reach, admin } = given
  return startServerProcess({
    ...processOptions(folder),
    command: findAsset('kube-apiserver', options.assets) ?? 'kube-apiserver',
    flags: mergeFlags(
      [
        `--etcd-servers=${etcdUrl}`,
        '--bind-address=127.0.0.1',
        '--advertise-address=127.0.0.1',
        `--secure-port=${securePort}`,
        `--cert-dir=${folder}`,
        `--client-ca-file=${join(folder, 'client-ca.crt')}`,
        `--service-account-issuer=${reach.server}/`,
        `--service-account-key-file=${join(folder, 'sa-signer.crt')}`,
        `--service-account-signing-key-file=${join(folder, 'sa-signer.key')}`,
        '--service-cluster-ip-range=10.0.0.0/24',
        '--allow-privileged=true',
        '--authorization-mode=RBAC',
        '--disable-admission-plugins=ServiceAccount',
        '--endpoint-reconciler-type=none',
        '--profiling=false',
      ],
      options.flags,
    ),
    isReady: async () => (await sendRequest(reach, admin, 'GET', '/healthz')).status === 200,
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

/** envtest writes these as Go durations; plain seconds are what people set. */
function secondsFromEnv(name: string, fallback: number): number {
  const match = /^(\d+(?:\.\d+)?)(s|m)?$/.exec(process.env[name] ?? '')
  return match === null ? fallback : Number(match[1]) * (match[2] === 'm' ? 60 : 1)
}

function mergeFlags(ours: readonly string[], theirs: readonly string[] = []): string[] {
  const nameOf = (flag: string) => flag.split('=', 1)[0]
  const given = new Set(theirs.map(nameOf))
  return [...ours.filter((flag) => !given.has(nameOf(flag))), ...theirs]
}

/** Memory where possible: etcd syncs every write, and on a disk that is most of the time of a test. */
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

function kubeconfigOf({ server, caPem }: Reach, user: User): string {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': base64(caPem) } }],
    users: [
      {
        name: user.name,
        user: { 'client-certificate-data': base64(user.certPem), 'client-key-data': base64(user.keyPem) },
      },
    ],
    contexts: [{ name: 'test', context: { cluster: 'test', user: user.name } }],
  })
}

async function sendRequest(
  { server, caPem, agent }: Reach,
  user: User,
  method: string,
  path: string,
  body?: unknown,
  type = 'application/json',
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': type }) }
    const tls = { ca: caPem, cert: user.certPem, key: user.keyPem }
    const outgoing = httpsRequest(new URL(path, server), { method, headers, agent, ...tls }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      incoming.once('error', reject)
      incoming.once('end', () => {
        const isJson = incoming.headers['content-type']?.startsWith('application/json') === true
        resolve({ status: incoming.statusCode ?? 0, body: isJson ? JSON.parse(text) : text })
      })
    })
    outgoing.once('error', reject)
    outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** Server-side apply: creates or replaces, whatever was there. */
async function put(plane: ControlPlane, object: Manifest): Promise<void> {
  const path = `${apiPathOf(object)}?fieldManager=control-plane&force=true`
  const reply = await plane.request('PATCH', path, object, { type: 'application/apply-patch+yaml' })
  if (reply.status >= 300) {
    throw new Error(`could not install ${object.kind} ${object.metadata.name}: ${JSON.stringify(reply.body)}`)
  }
}

/** A CRD is accepted before its resources are served; tests want the second. */
function untilServed(plane: ControlPlane) {
  return async (crd: Manifest): Promise<void> => {
    const { group, names, versions } = crd['spec'] as CrdSpec
    for (const version of versions.filter(({ served }) => served)) {
      await waitUntil(`${names.plural}.${group}/${version.name}`, async () => {
        return (await plane.request('GET', `/apis/${group}/${version.name}/${names.plural}?limit=1`)).status === 200
      })
    }
  }
}

interface CrdSpec {
  group: string
  names: { plural: string }
  versions: { name: string; served: boolean }[]
}

async function waitUntil(what: string, isTrue: () => Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`${what} is not served after ${timeoutMs} ms`)
    await delay(25)
  }
}

function once(task: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return async () => (running ??= task())
}
