/** The API server of a `seamark dnslb` that answers DNS itself stops answering for longer than a lease can be renewed. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint } from '@seamark/operator'
import { startRelay } from '@seamark/kube/testing'
import { beforeAll, expect, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { createNamespace, environmentKinds } from '../publish/test-environment.ts'
import { buildBundle } from '../records/manager-process.ts'
import { ask, POLL_OPTIONS, startBackends } from './backends.ts'
import { startDnslb } from './dnslb-process.ts'

const [EAST, WEST] = ['127.0.0.2', '127.0.0.3']
const NAME = 'shop.example.test'
/** The leases are lost 10 s after their last renewal. */
const PATIENT = { timeout: 60_000, interval: 100 }

beforeAll(() => buildBundle(), 120_000)

it('costs no answer; the process goes on, and works again when the API server is back', async () => {
  const [embedded] = environmentKinds
  await using environment = await embedded!.start()
  const { client } = environment
  for (const namespace of ['web', 'garden']) await createNamespace(client, namespace)
  await using relay = await startRelay(Number(/127\.0\.0\.1:(\d+)/.exec(environment.kubeconfig)?.[1]))
  const folder = await mkdtemp(join(tmpdir(), 'seamark-dnslb-outage-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const text = environment.kubeconfig.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${relay.port}`)
  await writeFile(kubeconfig, text, { mode: 0o600 })
  const backends = await startBackends(EAST, WEST)
  const [dnsPort, port] = [await freePort(), await freePort()]
  const dns = ['--dns-listen', `127.0.0.1:${dnsPort}`, '--dns-zones', 'example.test']
  const program = startDnslb(['--kubeconfig', kubeconfig, '--port', String(port), ...dns])
  const answer = async () => ask({ address: '127.0.0.1', port: dnsPort }, NAME).catch(() => 'none')
  const healthz = async () => fetch(`http://127.0.0.1:${port}/healthz`).then(({ status }) => status, String)
  const addEndpoint = async (name: string, ipaddress: string) =>
    client.create(DNSLoadBalancerEndpoint, {
      metadata: { namespace: 'web', name },
      spec: { loadbalancer: 'shop', ipaddress },
    })
  const seen = new Set<string>()
  const observer = setInterval(() => void answer().then((values) => seen.add(values)), 100)
  try {
    const create = async () =>
      client.create(DNSLoadBalancer, {
        metadata: { namespace: 'web', name: 'shop' },
        spec: {
          DNSName: NAME,
          healthPath: '/healthz',
          healthCheck: { scheme: 'http', port: backends.port, profile: 'fast' },
        },
      })
    // A server serves a kind a moment after its CRD is established.
    const created = async (make: () => Promise<unknown>): Promise<void> => {
      await expect.poll(async () => make().then(() => 'created', String), POLL_OPTIONS).toBe('created')
    }
    await created(create)
    await created(async () => addEndpoint('east', EAST))
    await expect.poll(answer, POLL_OPTIONS).toBe(EAST)
    seen.clear()

    relay.freeze()
    await expect.poll(() => program.log(), PATIENT).toContain('control has ended; DNS is answered')
    expect([await answer(), await healthz()]).toEqual([EAST, 200])
    relay.thaw()
    relay.cut()
    await addEndpoint('west', WEST)
    await expect.poll(answer, PATIENT).toBe(`${EAST} ${WEST}`)
    // One of both may have been seen, too: it is what is answered now.
    seen.add(`${EAST} ${WEST}`)
    expect([...seen].sort()).toEqual([EAST, `${EAST} ${WEST}`])
    expect(program.child.exitCode).toBeNull()
    expect(await program.stop()).toBe(0)
  } catch (error) {
    throw new Error(`${String(error)}\n${program.log()}`, { cause: error })
  } finally {
    clearInterval(observer)
    await program.kill()
    await backends.close()
    await rm(folder, { recursive: true })
  }
})
