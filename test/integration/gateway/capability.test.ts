/** The capability `gateway` of `seamark run`: data plane on every replica, statuses by one, also without lease and API server. */
import { type Client, ConfigMap, Lease } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startRun, statusAt } from './started-verb.ts'
import { startTestCluster, type TestCluster } from './test-cluster.ts'

const waiting = { timeout: 30_000 }
let cluster: TestCluster
let client: Client
const ends: (() => Promise<void>)[] = []

beforeAll(async () => {
  cluster = await startTestCluster()
  ends.push(cluster.stop)
  ;({ client } = cluster)
})
afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

interface Replica {
  readonly port: number
  /** How often the process announced that it is ready. */
  readonly starts: () => number
  readonly stop: () => Promise<void>
}

async function startReplica(): Promise<Replica> {
  const { manager, port } = await startRun(cluster.kubeconfig)
  ends.push(manager.stop)
  return { port, starts: () => manager.output().match(/^ready/gm)?.length ?? 0, stop: manager.stop }
}

const proxy = (name: string) => ({
  metadata: { namespace: 'default', name },
  spec: { virtualhost: { fqdn: `${name}.test` }, routes: [{ directResponsePolicy: { statusCode: 200 } }] },
})
const statusOf = async (name: string) => (await client.get(HTTPProxy, `default/${name}`)).status?.currentStatus

describe('the capability gateway of seamark run', () => {
  it('serves on every replica, writes statuses once, obeys a pause, and survives the loss of lease and API server', async () => {
    await client.create(HTTPProxy, proxy('one'))
    const [first, second] = await Promise.all([startReplica(), startReplica()])
    expect([await statusAt(first.port, 'one.test'), await statusAt(second.port, 'one.test')]).toEqual([200, 200])
    await expect.poll(async () => statusOf('one'), waiting).toBe('valid')

    // A pause of the manager stops statuses, not the data plane.
    await client.apply(ConfigMap, {
      metadata: { namespace: 'seamark', name: 'seamark', annotations: { 'seamark.io/pause': 'true' } },
    })
    await client.create(HTTPProxy, proxy('paused'))
    for (const { port } of [first, second])
      await expect.poll(async () => statusAt(port, 'paused.test'), waiting).toBe(200)
    expect(await statusOf('paused')).not.toBe('valid')
    await client.delete(ConfigMap, 'seamark/seamark')
    await expect.poll(async () => statusOf('paused'), waiting).toBe('valid')

    // Another process takes the leases of the manager and of the gateway.
    for (const name of ['contour-plus-leader', 'seamark-gateway']) {
      const lease = await client.get(Lease, `seamark/${name}`)
      const renewTime = new Date().toISOString().replace('Z', '000Z')
      await client.update(Lease, {
        ...lease,
        spec: { ...lease.spec, holderIdentity: 'other', leaseDurationSeconds: 3_600, renewTime },
      })
    }
    await client.create(HTTPProxy, proxy('later'))
    for (const { port } of [first, second])
      await expect.poll(async () => statusAt(port, 'later.test'), waiting).toBe(200)

    // The API server is gone: the last configuration stays.
    await cluster.stopServer()
    for (const { port } of [first, second])
      expect([await statusAt(port, 'one.test'), await statusAt(port, 'later.test')]).toEqual([200, 200])
    expect([first.starts(), second.starts()]).toEqual([1, 1])
    await Promise.all([first.stop(), second.stop()])
  }, 90_000)
})
