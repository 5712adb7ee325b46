/** What may fail between a hub and its members: restarts, lost members, rotated and deleted credentials. */
import { Ingress, Lease, Namespace, Secret } from '@seamark/kube'
import { type Peer, type PeerOptions, startPeer } from '@seamark/kube/testing'
import { Cluster, DNSLoadBalancerEndpoint, LeafIngress } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS, root } from './test-environment.ts'

const readyOf = async (environment: FleetEnvironment, name: string) =>
  (await environment.hub.client.get(Cluster, name)).status?.conditions?.find(({ type }) => type === 'Ready')

const ready = async (environment: FleetEnvironment, name: string) => (await readyOf(environment, name))?.status

async function startServing(): Promise<FleetEnvironment> {
  const environment = await FleetEnvironment.start(['eu1', 'us1'])
  for (const name of ['eu1', 'us1']) {
    await environment.register(name)
    await environment.deploy(name)
  }
  await environment.hub.client.create(
    Ingress,
    root('shop', 'shop.example.com', { annotations: { 'seamark.io/drain-seconds': '1', 'seamark.io/ttl': '1' } }),
  )
  return environment
}

async function admitBoth(environment: FleetEnvironment): Promise<void> {
  await environment.admit('eu1', 'shop/shop', '192.0.2.1')
  await environment.admit('us1', 'shop/shop', '192.0.2.2')
  for (const name of ['eu1', 'us1'])
    await expect.poll(async () => environment.judge(name, { healthy: true, active: true }), POLL_OPTIONS).toBe(1)
  await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Active')
}

describe('the fleet under faults', () => {
  it('drains a cluster while another manager takes over in every step, and never withdraws the only leaf', async () => {
    await using environment = await startServing()
    const { client } = environment.hub
    let count = 0
    const runNext = () =>
      environment.run(
        {},
        { leader: { lease: 'seamark', namespace: 'manager', identity: `m${count++}`, retryPeriodMs: 100 } },
      )
    let app = runNext()
    // Two managers of one hub: the holder of the Lease writes, the other one waits.
    const restart = async () => {
      const next = runNext()
      await app.stop()
      await expect
        .poll(async () => (await client.get(Lease, 'manager/seamark')).spec?.holderIdentity, POLL_OPTIONS)
        .toBe(`m${count - 1}`)
      app = next
    }
    // The members report addresses while no manager runs: the next one reads what was there before it started.
    for (const name of ['eu1', 'us1'])
      await expect.poll(async () => environment.exists(name, Ingress, 'shop/shop'), POLL_OPTIONS).toBe(true)
    const standby = runNext()
    await app.stop()
    expect(standby.writes).toEqual([])
    await standby.stop()
    await environment.admit('eu1', 'shop/shop', '192.0.2.1')
    await environment.admit('us1', 'shop/shop', '192.0.2.2')
    app = runNext()
    await admitBoth(environment)
    await restart()
    await client.patch(Cluster, 'us1', 'merge', { spec: { drain: { enabled: true } } })
    await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Draining')
    await restart()
    const drains = async () =>
      (await client.list(DNSLoadBalancerEndpoint)).items
        .map(({ spec }) => `${spec.ipaddress} ${spec.drain === true}`)
        .sort()
    await expect.poll(drains, POLL_OPTIONS).toEqual(['192.0.2.1 false', '192.0.2.2 true'])
    // DNS still answers it: nothing is deleted, however long it takes.
    expect(await environment.exists('us1', Ingress, 'shop/shop')).toBe(true)
    await environment.judge('us1', { healthy: true, active: false })
    const started = async () => (await client.find(LeafIngress, 'shop/ingress-shop--us1'))?.status?.drainStartedAt
    await expect
      .poll(async () => (await started()) ?? (await environment.phases()), POLL_OPTIONS)
      .not.toBe('eu1 Active, us1 Draining')
    await restart()
    await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active')
    expect(await environment.exists('us1', Ingress, 'shop/shop')).toBe(false)
    expect((await client.get(Ingress, 'shop/shop')).status?.loadBalancer?.ingress).toEqual([{ ip: '192.0.2.1' }])
    await restart()
    // The last one is to drain: it stays, with a reason.
    await client.patch(Cluster, 'eu1', 'merge', { spec: { drain: { enabled: true } } })
    await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Draining')
    await expect.poll(drains, POLL_OPTIONS).toEqual(['192.0.2.1 false'])
    const degraded = async () =>
      (await environment.global())?.status?.conditions?.find(({ type }) => type === 'Degraded')?.message
    await expect.poll(degraded, POLL_OPTIONS).toContain('eu1: no other leaf serves')
    await client.patch(Cluster, 'us1', 'merge', { spec: { drain: { enabled: false } } })
    await expect.poll(async () => environment.exists('us1', Ingress, 'shop/shop'), POLL_OPTIONS).toBe(true)
    await app.stop()
  })

  it('keeps what a lost member serves, takes rotated credentials, and removes nothing with a Secret', async () => {
    await using environment = await startServing()
    const { client } = environment.hub
    environment.run()
    await admitBoth(environment)
    const uid = (await environment.member('us1').client.get(Ingress, 'shop/shop')).metadata.uid
    // Rotation: the same server, other credentials.
    const secret = await client.get(Secret, 'manager/us1')
    await client.update(Secret, { ...secret, metadata: { ...secret.metadata, annotations: { rotated: 'yes' } } })
    await client.delete(Secret, 'manager/us1')
    await expect.poll(async () => ready(environment, 'us1'), POLL_OPTIONS).toBe('False')
    await expect
      .poll(
        async () => (await environment.global())?.status?.leaves?.find(({ cluster }) => cluster === 'us1')?.stale,
        POLL_OPTIONS,
      )
      .toBe(true)
    expect(await environment.phases()).toBe('eu1 Active, us1 Active')
    expect((await environment.member('us1').client.get(Ingress, 'shop/shop')).metadata.uid).toBe(uid)
    expect((await client.get(Ingress, 'shop/shop')).status?.loadBalancer?.ingress).toEqual([
      { ip: '192.0.2.1' },
      { ip: '192.0.2.2' },
    ])
    await environment.registerSecret('us1', environment.member('us1').kubeconfig)
    await expect.poll(async () => ready(environment, 'us1'), POLL_OPTIONS).toBe('True')
    await expect
      .poll(async () => (await environment.global())?.status?.leaves?.some(({ stale }) => stale === true), POLL_OPTIONS)
      .toBe(false)

    // The member is gone: what it serves stays in DNS until the probes say otherwise.
    await environment.member('us1').stop()
    await expect.poll(async () => ready(environment, 'us1'), POLL_OPTIONS).toBe('False')
    expect(await environment.phases()).toBe('eu1 Active, us1 Active')
    await environment.judge('us1', { healthy: false, active: true })
    await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Unhealthy')
    // A root is deleted while a member is gone: the rest goes, and the leaf waits for the member.
    await client.patch(Ingress, 'shop/shop', 'merge', {
      metadata: { annotations: { 'seamark.io/force-delete': 'true' } },
    })
    await client.delete(Ingress, 'shop/shop')
    await expect.poll(async () => client.find(Ingress, 'shop/shop'), POLL_OPTIONS).toBeUndefined()
    await expect.poll(async () => environment.exists('eu1', Ingress, 'shop/shop'), POLL_OPTIONS).toBe(false)
    const orphans = async () =>
      (await client.get(Cluster, 'us1')).status?.orphans?.map(({ kind, name }) => `${kind} ${name}`)
    await expect.poll(orphans, POLL_OPTIONS).toEqual(['Ingress shop'])
    await expect
      .poll(async () => environment.events('shop'), POLL_OPTIONS)
      .toEqual(expect.arrayContaining(['RootDeleted', 'LeafOrphaned']))
  })

  it('takes rotated credentials over without a new list or watch, and uses them for the next write', async () => {
    await using environment = await startServing()
    const { client } = environment.hub
    const member = environment.member('us1')
    const kubeconfigOf = (user: string) => member.embedded?.userKubeconfig(user, ['system:masters']) ?? ''
    const secretOf = (user: string) => ({ data: { kubeconfig: Buffer.from(kubeconfigOf(user)).toString('base64') } })
    await client.patch(Secret, 'manager/us1', 'merge', secretOf('old'))
    environment.run()
    await admitBoth(environment)
    const faults = member.embedded?.server.faults
    // Every list and new watch is refused from now on, and every request with the old credentials.
    faults?.fail({ verb: 'list' }, { status: 500 })
    faults?.fail({ verb: 'watch' }, { status: 500 })
    faults?.fail({ user: 'old' }, { status: 401 })
    await client.patch(Secret, 'manager/us1', 'merge', secretOf('new'))
    await client.patch(Ingress, 'shop/shop', 'json', [
      { op: 'replace', path: '/spec/rules/0/http/paths/0/path', value: '/rotated' },
    ])
    const path = async () => (await member.client.get(Ingress, 'shop/shop')).spec?.rules?.[0]?.http?.paths[0]?.path
    await expect.poll(path, POLL_OPTIONS).toBe('/rotated')
    // The watch of before still reports.
    await environment.admit('us1', 'shop/shop', '192.0.2.22')
    const addresses = async () =>
      (await client.get(LeafIngress, 'shop/ingress-shop--us1')).status?.addresses?.map(({ value }) => value)
    await expect.poll(addresses, POLL_OPTIONS).toEqual(['192.0.2.22'])
    expect(await ready(environment, 'us1')).toBe('True')
  })

  it('says that a member answers garbage, another one nothing, and a third with the UID of another cluster; others go on', async () => {
    await using environment = await startServing()
    const { client } = environment.hub
    const eu1 = await environment.member('eu1').client.get(Namespace, 'kube-system')
    const scripts: Record<string, PeerOptions['script']> = {
      garbage: (exchange) => exchange.reply(200, '{"kind":"List","items":[{"metadata":7'),
      types: (exchange) => exchange.reply(200, { kind: 'List', items: 7, groups: 7, metadata: [] }),
      silent: () => undefined,
      twin: (exchange) =>
        exchange.reply(200, {
          ...eu1,
          gitVersion: 'v1',
          groups: [{ name: 'networking.k8s.io' }],
          status: { allowed: true },
        }),
    }
    const peers: Peer[] = []
    try {
      for (const [name, script] of Object.entries(scripts)) {
        const peer = await startPeer({ script })
        peers.push(peer)
        await environment.registerSecret(name, peer.kubeconfig())
        await client.create(Cluster, { metadata: { name } } as Cluster)
      }
      environment.run()
      await admitBoth(environment)
      const report = async (name: string) => {
        const { status, reason, message } = (await readyOf(environment, name)) ?? {}
        return `${status} ${reason}: ${message}`
      }
      await expect
        .poll(async () => report('garbage'), POLL_OPTIONS)
        .toMatch(/^(Unknown|False) ClusterUnreachable: .*no object of Kubernetes/)
      await expect.poll(async () => report('types'), POLL_OPTIONS).toMatch(/^(Unknown|False) ClusterUnreachable: ./)
      await expect
        .poll(async () => report('silent'), POLL_OPTIONS)
        .toMatch(/^(Unknown|False) ClusterUnreachable: .*readyz/)
      await expect
        .poll(async () => report('twin'), POLL_OPTIONS)
        .toBe('False DuplicateCluster: Cluster eu1 has the same API server; delete one of them')
      expect(await environment.phases()).toBe('eu1 Active, us1 Active')
    } finally {
      for (const peer of peers) await peer.close()
    }
  })
})
