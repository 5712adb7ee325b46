/** The overview follows what clients get: a cluster is drained, then another one is lost. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Ingress } from '@seamark/kube'
import { BalanceConfig, Cluster, DnsConfig, GlobalIngressPolicy } from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS, root } from '../fleet/test-environment.ts'
import { pageFor, readState, request, StreamReader } from './page-environment.ts'
import type { HostPage } from '@seamark/dashboard'

async function startGateway(address: string, port = 0): Promise<Server & { port: number }> {
  const server = createServer((_request, response) => response.end(address))
  await new Promise<void>((resolve) => server.listen(port, address, resolve))
  return Object.assign(server, { port: (server.address() as AddressInfo).port })
}

function stop(gateway: Server): void {
  gateway.closeAllConnections()
  gateway.close()
}

const HOST = 'shop.demo.test'

it('clusters, answers and hops follow a gateway that stops, a drain, and an API server that is lost', async () => {
  const eu1 = await startGateway('127.0.0.1')
  const us1 = await startGateway('127.0.0.2', eu1.port)
  try {
    await using environment = await FleetEnvironment.start(['eu1', 'us1'])
    const { client } = environment.hub
    for (const name of ['eu1', 'us1']) {
      await environment.register(name)
      await environment.deploy(name)
    }
    await client.create(GlobalIngressPolicy, {
      metadata: { namespace: 'shop', name: 'shop' },
      spec: {
        targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }],
        traffic: { ttlSeconds: 1 },
        migration: { drainSeconds: 1, minHoldSeconds: 0 },
        health: { protocol: 'HTTP', port: eu1.port, intervalSeconds: 1, timeoutSeconds: 1, rise: 1, fall: 2 },
      },
    } as GlobalIngressPolicy)
    const url = await new Promise<string>((resolve) => {
      environment.run(
        {},
        {
          balance: { config: BalanceConfig.parse({ enabled: true }), startThread: proberInThisThread(20) },
          dns: { config: DnsConfig.parse({ listen: ['127.0.0.1:0'], zones: ['demo.test'] }), env: {} },
          page: pageFor(),
          onReady: ({ page = '' }) => resolve(page),
        },
      )
    })
    await client.create(Ingress, root('shop', HOST))
    await environment.admit('eu1', 'shop/shop', '127.0.0.1')
    await environment.admit('us1', 'shop/shop', '127.0.0.2')
    const reader = await StreamReader.open(url)
    const host = () => reader.state?.hosts.find(({ name }) => name === HOST)
    const answers = () => host()?.answers.map(({ address, share, state }) => `${address} ${share} ${state}`)
    const clusters = () => reader.state?.clusters.map(({ name, state }) => `${name} ${state}`)
    await expect.poll(answers, POLL_OPTIONS).toEqual(['127.0.0.1 0.5 answered', '127.0.0.2 0.5 answered'])
    await expect.poll(clusters, POLL_OPTIONS).toEqual(['eu1 Serving', 'us1 Serving'])
    await expect.poll(() => host()?.state, POLL_OPTIONS).toBe('as it should be')
    expect(host()).toMatchObject({ owner: 'Ingress shop/shop', by: 'fleet', zone: 'demo.test', answersFrom: 'zone' })
    expect(host()?.answers[0]).toMatchObject({ cluster: 'eu1', services: ['shop/web:80'] })

    const page = JSON.parse((await request(url, `/api/v1/hosts/${HOST}`)).text) as HostPage
    expect(page.hops.map(({ name, state }) => `${name} ${state}`)).toContain('answer ok')
    expect(page.hops.filter(({ state }) => state === 'broken')).toEqual([])
    expect(page.answers.map(({ state, records }) => [state, records.map(({ value }) => value)])).toEqual([
      ['right', ['127.0.0.1', '127.0.0.2']],
    ])
    expect(page.targets.map(({ cluster, health, isPublished }) => [cluster, health, isPublished])).toEqual([
      ['eu1', 'healthy', true],
      ['us1', 'healthy', true],
    ])
    expect(page.objects.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['Ingress', 'GlobalIngress', 'LeafIngress']),
    )

    stop(us1)
    await expect.poll(clusters, POLL_OPTIONS).toEqual(['eu1 Serving', 'us1 Unhealthy'])
    await expect.poll(answers, POLL_OPTIONS).toContain('127.0.0.1 1 answered')
    expect(reader.state?.needsYou.map(({ id }) => id)).toContain('cluster/us1')

    await client.patch(Cluster, 'us1', 'merge', { spec: { drain: { enabled: true } } })
    await expect.poll(clusters, POLL_OPTIONS).toEqual(['eu1 Serving', 'us1 Drained'])
    await environment.member('eu1').stop()
    await expect.poll(clusters, POLL_OPTIONS).toEqual(['eu1 Unreachable', 'us1 Drained'])
    expect(reader.state?.clusters[0]).toMatchObject({ answersStill: true, share: 1 })
    expect(reader.kinds[0]).toBe('snapshot')
    // What was put together from differences is what is read at once.
    await expect
      .poll(async () => {
        const state = await readState(url)
        return { ...state, manager: undefined, version: state.version === reader.state?.version }
      }, POLL_OPTIONS)
      .toEqual({ ...reader.state, manager: undefined, version: true })
    reader.close()
  } finally {
    stop(eu1)
    stop(us1)
  }
}, 120_000)
