/**
 * What `seamark tree` and `seamark explain` say while the manager, which answers the zone itself, is stopped or killed: its clients
 * get nothing then, whatever it stored before.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ingress } from '@seamark/kube'
import { DNSEndpoint, GlobalIngressPolicy } from '@seamark/operator'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { buildBundle, type ManagerProcess, startManager } from '../records/manager-process.ts'
import { runCommand } from '../records/run-command.ts'
import { FleetEnvironment, POLL_OPTIONS, root } from './test-environment.ts'

const HOST = 'shop.example.com'
const DIRECT = 'direct.example.com'

const backend = createServer((_request, response) => response.end('ok'))
let folder: string

beforeAll(async () => {
  buildBundle()
  folder = await mkdtemp(join(tmpdir(), 'seamark-outage-'))
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  backend.closeAllConnections()
  backend.close()
  await rm(folder, { recursive: true, force: true })
})

it('a host is broken, for tree and explain, as soon as the manager that answers it is stopped or killed', async () => {
  await using environment = await FleetEnvironment.start(['eu1'])
  const { client, kubeconfig } = environment.hub
  await environment.register('eu1')
  await environment.deploy('eu1')
  await client.create(GlobalIngressPolicy, {
    metadata: { namespace: 'shop', name: 'shop' },
    spec: {
      targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }],
      health: { protocol: 'HTTP', port: (backend.address() as AddressInfo).port, intervalSeconds: 1, rise: 1 },
    },
  } as GlobalIngressPolicy)
  const files = { config: join(folder, 'config.yaml'), kubeconfig: join(folder, 'kubeconfig') }
  const address = `127.0.0.1:${await freePort()}`
  await writeFile(files.kubeconfig, kubeconfig, { mode: 0o600 })
  await writeFile(
    files.config,
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
namespace: manager
mode: enforce
allowLoopback: true
leaderElection: { leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 1s }
publish: { enabled: false }
fleet: { enabled: true }
balance: { enabled: true }
dns: { listen: ['${address}'], zones: [example.com] }
`,
  )
  const connection = ['--kubeconfig', files.kubeconfig]
  const configured = ['--config', files.config, ...connection]
  const said = async (...argv: string[]) => {
    const { stdout, stderr, code } = await runCommand(argv)
    const verdict = stdout.split('\n').filter((line) => / is (as it|degraded|broken)/.test(line))
    return `${code} ${verdict.join(' ')}${stderr}`
  }
  const all = async () =>
    Promise.all([
      said('explain', HOST, ...configured),
      said('explain', DIRECT, ...configured),
      said('tree', HOST, ...configured),
      said('tree', HOST, ...connection),
    ])
  const hosts = [HOST, DIRECT, HOST, HOST]
  const ok = hosts.map((host) => `0 ${host} is as it should be`)
  const silent = hosts.map((host) => `2 ${host} is broken at answer: a DNS server of the host does not answer`)
  const endpoint = (name: string): DNSEndpoint => ({
    metadata: { namespace: 'shop', name },
    spec: {
      endpoints: [{ dnsName: `${name}.example.com`, recordType: 'A', recordTTL: 60, targets: ['192.0.2.7'] }],
    },
  })

  let manager: ManagerProcess | undefined
  try {
    manager = await startManager([...configured, '--dns-copy-dir', folder])
    await client.create(DNSEndpoint, endpoint('direct'))
    await client.create(Ingress, root('shop', HOST))
    await environment.admit('eu1', 'shop/shop', '127.0.0.1')
    await expect.poll(all, POLL_OPTIONS).toEqual(ok)

    manager.child.kill('SIGSTOP')
    expect(await all()).toEqual(silent)
    const tree = await runCommand(['tree', HOST, ...connection, '-o', 'json'])
    expect(JSON.parse(tree.stdout)).toMatchObject({ host: HOST, verdict: { state: 'broken', reason: 'NoAnswer' } })
    manager.child.kill('SIGCONT')
    await expect.poll(all, POLL_OPTIONS).toEqual(ok)

    await manager.kill()
    expect(await all()).toEqual(silent)
    // Nobody makes a change: neither while the Lease waits to expire nor after that.
    await client.create(DNSEndpoint, endpoint('new'))
    const fresh = async () => (await runCommand(['explain', 'new.example.com', ...configured, '-o', 'json'])).stdout
    expect(await fresh()).not.toContain('NotYetPropagated')
    await expect
      .poll(fresh, POLL_OPTIONS)
      .toMatch(/: not written; no manager holds Lease manager\/contour-plus-leader since \d{4}-/)
    expect(await said('explain', 'new.example.com', ...configured)).toBe(
      '2 new.example.com is broken at plan: no manager holds the Lease, so that nothing is written',
    )
    // A root that nobody takes up.
    await client.create(Ingress, root('late', 'late.example.com'))
    for (const flags of [configured, [...connection, '-n', 'manager']])
      expect(await said('explain', 'late.example.com', ...flags)).toBe(
        '2 late.example.com is broken at claim: no manager holds the Lease, so that nothing is written',
      )
    // Without the address of a server, too: what was stored is not what clients get.
    expect((await said('tree', HOST, ...connection, '-n', 'manager')).slice(0, 2)).toBe('2 ')
  } finally {
    manager?.child.kill('SIGCONT')
    manager?.child.kill('SIGKILL')
  }
})
