/**
 * The baseline: a bare `node:http2` client, one session, 32 requests in flight. Run as a child process with
 * `KUBECONFIG COUNT TASK`; prints one line of JSON with wall and CPU seconds.
 */
import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { performance } from 'node:perf_hooks'
import { parse } from 'yaml'
import { ADDRESS, certificateWrite, dnsWrite, MOVED_ADDRESS, NAMESPACE, proxyBody } from './objects.ts'

const [, , kubeconfigPath = '', countText = '0', task = ''] = process.argv
const count = Number(countText)
const IN_FLIGHT = 32
const PAGE = 500

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[]
  users: { user: { 'client-certificate-data'?: string; 'client-key-data'?: string; token?: string } }[]
}

const config = parse(readFileSync(kubeconfigPath, 'utf8')) as Kubeconfig
const pem = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString()
const user = config.users[0]?.user
const session: ClientHttp2Session = connect(config.clusters[0]?.cluster.server ?? '', {
  ca: pem(config.clusters[0]?.cluster['certificate-authority-data']),
  cert: pem(user?.['client-certificate-data']),
  key: pem(user?.['client-key-data']),
})
const authorization = user?.token === undefined ? {} : { authorization: `Bearer ${user.token}` }

async function send(method: string, path: string, body?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const type = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json'
    const stream = session.request({
      ':method': method,
      ':path': path,
      accept: 'application/json',
      ...authorization,
      ...(body === undefined ? {} : { 'content-type': type }),
    })
    let status = 0
    const chunks: Buffer[] = []
    stream.on('response', (headers) => (status = Number(headers[':status'])))
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('error', reject)
    stream.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      if (status >= 300) reject(new Error(`${method} ${path}: ${status} ${text.slice(0, 300)}`))
      else resolve(text)
    })
    stream.end(body)
  })
}

async function inFlight(total: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      for (let index = next++; index < total; index = next++) await work(index)
    }),
  )
}

async function listAll(path: string): Promise<number> {
  let found = 0
  let token = ''
  do {
    const page = JSON.parse(
      await send('GET', `${path}?limit=${PAGE}${token === '' ? '' : `&continue=${encodeURIComponent(token)}`}`),
    ) as { items: unknown[]; metadata: { continue?: string } }
    found += page.items.length
    token = page.metadata.continue ?? ''
  } while (token !== '')
  return found
}

const TASKS: Record<string, () => Promise<unknown>> = {
  proxies: async () =>
    inFlight(count, async (index) =>
      send('POST', `/apis/projectcontour.io/v1/namespaces/${NAMESPACE}/httpproxies`, proxyBody(index)),
    ),
  children: async () => {
    // As a controller does it: both objects of one source together.
    await inFlight(count * 2, async (position) => {
      const index = position >> 1
      const { path, body } = position % 2 === 0 ? dnsWrite(index, ADDRESS) : certificateWrite(index)
      return send('PATCH', path, body)
    })
  },
  move: async () =>
    inFlight(count, async (index) => {
      const { path, body } = dnsWrite(index, MOVED_ADDRESS)
      return send('PATCH', path, body)
    }),
  list: async () => {
    for (const path of [
      '/apis/projectcontour.io/v1/httpproxies',
      '/apis/externaldns.k8s.io/v1alpha1/dnsendpoints',
      '/apis/cert-manager.io/v1/certificates',
    ])
      await listAll(path)
  },
}

// The connection is set up before the clock starts, as it is for us.
await send('GET', '/version')
const started = performance.now()
const before = process.cpuUsage()
await TASKS[task]?.()
const cpu = process.cpuUsage(before)
process.stdout.write(
  `${JSON.stringify({ wallSeconds: (performance.now() - started) / 1_000, cpuSeconds: (cpu.user + cpu.system) / 1e6 })}\n`,
)
session.close()
