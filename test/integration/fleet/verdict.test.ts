/**
 * What `seamark explain`, `tree` and `plan` say about hosts of a manager with fleet, balance and its own DNS server, without
 * records.enabled, beside what its clients get.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, groupRecords } from '@seamark/dns'
import { Ingress } from '@seamark/kube'
import { Gateway, GatewayClass, HTTPRoute } from '@seamark/kube/gateway-api'
import { Cluster, type Explanation, GlobalIngressPolicy, loadConfig } from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { expect, it } from 'vitest'
import { runCommand } from '../records/run-command.ts'
import { FleetEnvironment, POLL_OPTIONS, root } from './test-environment.ts'

const HOST = 'shop.example.com'

async function startGateway(address: string, port = 0): Promise<Server & { port: number }> {
  const server = createServer((_request, response) => response.end(address))
  await new Promise<void>((resolve) => server.listen(port, address, resolve))
  return Object.assign(server, { port: (server.address() as AddressInfo).port })
}

function stop(server: Server): void {
  server.closeAllConnections()
  server.close()
}

const CONFIG = `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
allowLoopback: true
publish: { enabled: false }
fleet: { enabled: true }
balance: { enabled: true }
dns: { listen: ['127.0.0.1:0'], zones: [example.com] }
`

it('a host is as it should be, degraded or broken as its clients find it, and what was asked for is no fault', async () => {
  const eu1 = await startGateway('127.0.0.1')
  const us1 = await startGateway('127.0.0.2', eu1.port)
  const resolver = createDnsClient()
  const folder = await mkdtemp(join(tmpdir(), 'seamark-verdict-'))
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
        placement: { minClusters: 2 },
        traffic: { ttlSeconds: 1 },
        migration: { drainSeconds: 1, minHoldSeconds: 0 },
        health: { protocol: 'HTTP', port: eu1.port, intervalSeconds: 1, timeoutSeconds: 1, rise: 1, fall: 2 },
      },
    } as GlobalIngressPolicy)
    const loaded = loadConfig({ file: CONFIG })
    if (!loaded.ok) throw new Error(loaded.faults.join('; '))
    const address = await new Promise<string>((resolve) => {
      environment.run(
        {},
        {
          balance: { config: loaded.config.balance, startThread: proberInThisThread(20) },
          dns: { config: loaded.config.dns, env: {} },
          onReady: ({ dns: [first] = [] }) => resolve(first ?? ''),
        },
      )
    })
    const server = { address: '127.0.0.1', port: Number(address.split(':').at(-1)) }
    const answer = async (name = HOST) => {
      const { message } = await resolver.query({ server, name, type: 'A' })
      return groupRecords(message.answers)
        .flatMap(({ values }) => [...values])
        .sort()
    }
    const config = join(folder, 'config.yaml')
    const kubeconfig = join(folder, 'kubeconfig')
    await writeFile(config, CONFIG.replace('127.0.0.1:0', `127.0.0.1:${server.port}`))
    await writeFile(kubeconfig, environment.hub.kubeconfig, { mode: 0o600 })
    const flags = ['--config', config, '--kubeconfig', kubeconfig, '-n', 'manager']
    const explain = async (host = HOST) => {
      const { stdout, code, stderr } = await runCommand(['explain', host, ...flags, '-o', 'json'])
      expect(stderr).toBe('')
      const explanation = JSON.parse(stdout) as Explanation
      // No hop says of an address what the hop `answer` contradicts.
      const answered = explanation.hops.find(({ name }) => name === 'answer')?.text ?? ''
      for (const { name, text } of explanation.hops)
        for (const [, still = ''] of name === 'leaf' ? text.matchAll(/(\S+) withdrawn, still answered/g) : [])
          expect(answered).toContain(still)
      return { ...explanation, code }
    }
    const said = async (host = HOST) => {
      const { verdict, code } = await explain(host)
      return `${code} ${verdict.text}`
    }
    const tree = async (host = HOST) => (await runCommand(['tree', host, ...flags])).stdout

    await client.create(Ingress, root('shop', HOST))
    await environment.admit('eu1', 'shop/shop', '127.0.0.1')
    await environment.admit('us1', 'shop/shop', '127.0.0.2')
    await expect.poll(answer, POLL_OPTIONS).toEqual(['127.0.0.1', '127.0.0.2'])
    await expect.poll(said, POLL_OPTIONS).toBe(`0 ${HOST} is as it should be`)
    const textOf = async (name: string) => (await explain()).hops.find((hop) => hop.name === name)?.text
    expect(await textOf('plan')).toBe('zone example.com: nothing to change')
    expect(await textOf('provider')).toBe('zone example.com has 127.0.0.1, 127.0.0.2')
    expect(await textOf('answer')).toBe(`127.0.0.1:${server.port} answers 127.0.0.1, 127.0.0.2`)
    expect((await tree()).trimEnd().split('\n').at(-1)).toBe(`${HOST} is as it should be`)
    const plan = await runCommand(['plan', ...flags])
    expect([plan.code, plan.stderr, plan.stdout]).toEqual([0, '', expect.stringContaining('0 changes, 0 held')])

    // Nobody knows the host, in a zone of the server and in none.
    for (const host of ['nobody.example.com', 'nobody.example.org']) {
      const { code, hops, firstBroken } = await explain(host)
      expect([code, firstBroken?.reason]).toEqual([2, 'SourceNotFound'])
      expect(JSON.stringify(hops)).not.toMatch(/zone ''|still in zone|ExternalDNS has seen/)
    }

    // A root of which no leaf can be made.
    await client.create(GatewayClass, { metadata: { name: 'global' }, spec: { controllerName: 'seamark.io/global' } })
    await client.create(Gateway, {
      metadata: { namespace: 'shop', name: 'global' },
      spec: { gatewayClassName: 'global', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    })
    await client.create(HTTPRoute, {
      metadata: { namespace: 'shop', name: 'route' },
      spec: {
        parentRefs: [{ name: 'global' }],
        hostnames: ['route.example.com'],
        rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
      },
    })
    const meaning = 'the Cluster maps none of the parents of the HTTPRoute'
    await expect
      .poll(async () => said('route.example.com'), POLL_OPTIONS)
      .toBe(`2 route.example.com is broken at placement: ${meaning}`)
    expect(await tree('route.example.com')).toContain('NoMatchingParent: no leaf: ')

    // A cluster fails over as designed, and is then drained because somebody asked for it.
    stop(us1)
    await expect.poll(answer, POLL_OPTIONS).toEqual(['127.0.0.1'])
    await expect.poll(said, POLL_OPTIONS).toBe(`2 ${HOST} is degraded at leaf: the health check of the leaf fails`)
    await client.patch(Cluster, 'us1', 'merge', { spec: { drain: { enabled: true } } })
    await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active')
    await expect.poll(said, POLL_OPTIONS).toBe(`0 ${HOST} is as it should be`)
    expect(await textOf('placement')).toBe(
      'on 1 of 2 clusters: fewer than minClusters 2 while us1 is drained; not on us1: it is being drained; seamark undrain ends that',
    )

    // The old name of a host that was renamed is removed, as it was asked for.
    await client.patch(Ingress, 'shop/shop', 'merge', {
      spec: { rules: root('shop', 'store.example.com').spec?.rules },
    })
    await expect.poll(async () => answer('store.example.com'), POLL_OPTIONS).toEqual(['127.0.0.1'])
    await expect.poll(answer, POLL_OPTIONS).toEqual([])
    await expect.poll(said, POLL_OPTIONS).toBe(`0 ${HOST} is as it should be`)
    expect((await explain()).hops[0]?.text).toContain('its records were removed at ')

    // A root that is being deleted: nothing is answered, and the leaves stay for the time of caches.
    await client.patch(GlobalIngressPolicy, 'shop/shop', 'merge', { spec: { traffic: { ttlSeconds: 600 } } })
    await expect
      .poll(async () => said('store.example.com'), POLL_OPTIONS)
      .toBe('0 store.example.com is as it should be')
    await expect.poll(async () => (await environment.global())?.spec.ttlSeconds, POLL_OPTIONS).toBe(600)
    await client.delete(Ingress, 'shop/shop')
    const deleted =
      /^0 store\.example\.com is being deleted: waits for caches that may have its addresses until \d\d:\d\d:\d\dZ$/
    await expect.poll(async () => said('store.example.com'), POLL_OPTIONS).toMatch(deleted)
    expect(await answer('store.example.com')).toEqual([])
    expect(await tree('store.example.com')).toMatch(
      /Ingress shop\/shop {2}being deleted: waits for .* until \d\d:\d\d:\d\dZ\n/,
    )
    expect(await tree('store.example.com')).not.toContain('leaves serve')
    const summary = async () => (await client.get(Ingress, 'shop/shop')).metadata.annotations?.['seamark.io/summary']
    await expect.poll(summary, POLL_OPTIONS).toMatch(/^being deleted; leaves stay until /)
  } finally {
    await resolver.close()
    for (const gateway of [eu1, us1]) stop(gateway)
    await rm(folder, { recursive: true, force: true })
  }
})
