/**
 * The baseline of the latency: a bare client that sees each new HTTPProxy by a watch and applies its DNSEndpoint at once. Run
 * as a child process with `KUBECONFIG`; prints `ready` when it watches, and ends with SIGTERM.
 */
import { bareClient } from './bare-client.ts'
import { ADDRESS, dnsWrite } from './objects.ts'

const PROXIES = '/apis/projectcontour.io/v1/httpproxies'
const [, , kubeconfigPath = ''] = process.argv
const client = bareClient(kubeconfigPath)

const { metadata } = JSON.parse(await client.send('GET', `${PROXIES}?limit=1`)) as {
  metadata: { resourceVersion: string }
}
client.watch(`${PROXIES}?watch=true&resourceVersion=${metadata.resourceVersion}`, (line) => {
  const { type, object } = JSON.parse(line) as { type: string; object: { metadata: { name: string } } }
  if (type !== 'ADDED') return
  const { path, body } = dnsWrite(Number(/\d+$/.exec(object.metadata.name)?.[0]), ADDRESS)
  client.send('PATCH', path, body).catch((error: unknown) => process.stderr.write(`${String(error)}\n`))
})
process.on('SIGTERM', () => {
  client.close()
  process.exit(0)
})
process.stdout.write('ready\n')
