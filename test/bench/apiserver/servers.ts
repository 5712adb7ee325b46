/** The two servers that the figures compare, each as a process of its own, and an HTTP/2 client for both. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '@seamark/kit'
import { ControlPlane } from '@seamark/kube/testing'
import { parseAllDocuments } from 'yaml'

const root = join(import.meta.dirname, '../../..')
const definition = join(root, '../shared/crds/contour-httpproxies.yaml')
const bundle = join(root, 'dist/seamark.mjs')

export interface Target {
  readonly pid: number | undefined
  /** A new connection. */
  open(): Session
  stop(): Promise<void>
}

export class Session {
  readonly session: ClientHttp2Session
  readonly #headers: Record<string, string>

  constructor(session: ClientHttp2Session, headers: Record<string, string>) {
    this.session = session
    this.#headers = headers
    session.setMaxListeners(0)
    session.on('error', () => undefined)
  }

  async send(method: string, path: string, body?: Buffer): Promise<{ status: number; bytes: number }> {
    return await new Promise((resolve, reject) => {
      const stream = this.session.request(
        {
          ':method': method,
          ':path': path,
          ...this.#headers,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        { endStream: body === undefined },
      )
      let status = 0
      let bytes = 0
      stream.on('response', (headers) => (status = Number(headers[':status'])))
      stream.on('data', (chunk: Buffer) => (bytes += chunk.length))
      stream.on('error', reject)
      stream.on('end', () => resolve({ status, bytes }))
      if (body !== undefined) stream.end(body)
    })
  }

  /** Calls `onLine` once a line of a watch; what is in the lines is not read, so that the client costs little. */
  watch(path: string, onLine: () => void): () => void {
    const stream = this.session.request({ ':path': path, ...this.#headers })
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Buffer) => {
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) onLine()
    })
    return () => stream.close()
  }

  async getJson(path: string): Promise<{ metadata: { resourceVersion: string } }> {
    return await new Promise((resolve, reject) => {
      const stream = this.session.request({ ':path': path, ...this.#headers })
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('error', reject)
      stream.on('end', () =>
        resolve(JSON.parse(Buffer.concat(chunks).toString()) as { metadata: { resourceVersion: string } }),
      )
    })
  }
}

/** Builds the bundle when a source is newer, so that what is measured is what is shipped. */
export function build(): string {
  const { status, stderr } = spawnSync(join(root, 'bin/seamark'), ['version'], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`bin/seamark does not run: ${stderr}`)
  return bundle
}

/** `isDurable`: with a data directory on the disk of the checkout, which a folder for temporary files may not be. */
export async function startEmbedded({ isDurable = false } = {}): Promise<Target> {
  const folder = mkdtempSync(join(isDurable ? diskFolder() : tmpdir(), 'bench-apiserver-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const data = isDurable ? ['--data-dir', join(folder, 'data')] : []
  const flags = ['--listen', '127.0.0.1:0', '--kubeconfig', kubeconfig, ...data]
  const child = spawn(process.execPath, [build(), 'apiserver', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
  const url = await new Promise<string>((resolve, reject) => {
    child.on('exit', () => reject(new Error('the embedded server ended')))
    child.stdout.on('data', (chunk: Buffer) => {
      const found = /^ready (\S+)/m.exec(chunk.toString())?.[1]
      if (found !== undefined) resolve(found)
    })
  })
  const text = readFileSync(kubeconfig, 'utf8')
  const ca = Buffer.from(/certificate-authority-data: (\S+)/.exec(text)?.[1] ?? '', 'base64')
  const token = /token: (\S+)/.exec(text)?.[1] ?? ''
  return {
    pid: child.pid,
    open: () => new Session(connect(url, { ca }), { authorization: `Bearer ${token}` }),
    async stop() {
      const ended = new Promise<void>((resolve) => child.on('exit', () => resolve()))
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** `isDurable`: etcd on the same disk, with fsync as in production; else in memory where there is a memory disk. */
export async function startReal({ isDurable = false } = {}): Promise<Target> {
  const folder = isDurable ? mkdtempSync(join(diskFolder(), 'bench-etcd-')) : undefined
  const etcdFlags = folder === undefined ? [] : [`--data-dir=${folder}`, '--unsafe-no-fsync=false']
  const known = folder !== undefined && !hasNoFsyncFlag() ? etcdFlags.slice(0, 1) : etcdFlags
  const plane = await ControlPlane.start({ etcdFlags: known })
  const { admin } = plane
  return {
    pid: undefined,
    open: () => new Session(connect(plane.server, { ca: plane.caPem, cert: admin.certPem, key: admin.keyPem }), {}),
    async stop() {
      await plane.stop()
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Beside the bundle, which is on the same disk for both. */
function diskFolder(): string {
  build()
  return join(root, 'dist')
}

/** etcd 3.4 always syncs, and does not have the flag. */
function hasNoFsyncFlag(): boolean {
  return spawnSync(findProgram('etcd') ?? 'etcd', ['--help'], { encoding: 'utf8' }).stdout.includes('--unsafe-no-fsync')
}

export function readDefinition(): object {
  const [document] = parseAllDocuments(readFileSync(definition, 'utf8'))
  return document?.toJS() as object
}

export function findDefinition(): string | undefined {
  try {
    readFileSync(definition)
    return undefined
  } catch {
    return `${definition} is not there`
  }
}

export const proxies = '/apis/projectcontour.io/v1/namespaces/default/httpproxies'

/** An HTTPProxy whose JSON has about 1 kB. */
export function proxy(name: string): Buffer {
  const routes = Array.from({ length: 6 }, (_, index) => ({
    conditions: [{ prefix: `/service-${index}/api/v1` }],
    services: [{ name: `backend-${index}`, port: 8080, weight: 10 }],
    timeoutPolicy: { response: '30s', idle: '60s' },
  }))
  return Buffer.from(
    JSON.stringify({
      apiVersion: 'projectcontour.io/v1',
      kind: 'HTTPProxy',
      metadata: { name, labels: { app: 'bench' } },
      spec: { virtualhost: { fqdn: `${name}.example.com` }, routes },
    }),
  )
}

/** Installs the definition and waits until it is served. */
export async function prepare(session: Session): Promise<void> {
  await session.send(
    'POST',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    Buffer.from(JSON.stringify(readDefinition())),
  )
  while ((await session.send('GET', proxies)).status !== 200) await new Promise((resolve) => setTimeout(resolve, 50))
}

/** Creates `count` objects, `inFlight` at a time; the answer is the time it took, in s. */
export async function createMany(session: Session, prefix: string, count: number, inFlight: number): Promise<number> {
  const bodies = Array.from({ length: count }, (_, index) => proxy(`${prefix}-${index}`))
  const started = performance.now()
  const worker = async (): Promise<void> => {
    for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
      const { status } = await session.send('POST', proxies, body)
      if (status !== 201) throw new Error(`a create was answered ${status}`)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  return (performance.now() - started) / 1000
}
