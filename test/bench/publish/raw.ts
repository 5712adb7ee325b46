/**
 * The baseline: a bare `node:http2` client, one session, 32 requests in flight. Run as a child process with
 * `KUBECONFIG COUNT TASK`; prints one line of JSON with wall and CPU seconds.
 */
import { performance } from 'node:perf_hooks'
import { bareClient } from './bare-client.ts'
import { ADDRESS, certificateWrite, dnsWrite, MOVED_ADDRESS, NAMESPACE, proxyBody } from './objects.ts'

const [, , kubeconfigPath = '', countText = '0', task = ''] = process.argv
const count = Number(countText)
const IN_FLIGHT = 32
const PAGE = 500

const client = bareClient(kubeconfigPath)
const send: typeof client.send = (...request) => client.send(...request)

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
client.close()
