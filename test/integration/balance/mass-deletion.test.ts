/**
 * Records of many load balancers that would go at once: their names are answered until one approval, which is that of the
 * records, or of the load balancers where ExternalDNS serves the records.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '@seamark/kube'
import { createDnsClient, groupRecords, RCODE } from '@seamark/dns'
import { DNSEndpoint, DNSLoadBalancer, DNSLoadBalancerEndpoint } from '@seamark/operator'
import { expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS } from '../fleet/test-environment.ts'
import { startVerb } from '../gateway/started-verb.ts'
import { runCommand } from '../records/run-command.ts'

const NAMES = Array.from({ length: 7 }, (_, index) => `lb-${index}`)

async function createLoadBalancers(client: Client, port: number): Promise<void> {
  for (const name of NAMES) {
    await client.create(DNSLoadBalancer, {
      metadata: { namespace: 'shop', name },
      spec: {
        DNSName: `${name}.example.test`,
        healthPath: '/',
        healthCheck: { scheme: 'http', port, profile: 'fast' },
      },
    })
    await client.create(DNSLoadBalancerEndpoint, {
      metadata: { namespace: 'shop', name },
      spec: { loadbalancer: name, ipaddress: '127.0.0.2' },
    })
  }
}

it('is held by records, and one approval lets it pass', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-mass-deletion-'))
  await using environment = await FleetEnvironment.start([])
  const { client } = environment.hub
  const backend = createServer((_, response) => response.end('ok'))
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.2', resolve))
  const { port } = backend.address() as AddressInfo
  await createLoadBalancers(client, port)
  const kubeconfig = join(folder, 'kubeconfig')
  const config = join(folder, 'seamark.yaml')
  await writeFile(kubeconfig, environment.hub.kubeconfig, { mode: 0o600 })
  await writeFile(
    config,
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
allowLoopback: true
logLevel: silent
publish: { enabled: false }
balance: { enabled: true }
dns: { listen: ["127.0.0.1:0"], zones: [example.test] }
`,
  )
  const flags = ['--kubeconfig', kubeconfig, '--config', config, '--namespace', 'manager']
  const verb = await startVerb('run', [...flags, '--metrics-address=0', '--probes-address=0'])
  const resolver = createDnsClient()
  try {
    const address = await verb.line('dns')
    const server = { address: '127.0.0.1', port: Number(address.slice(address.lastIndexOf(':') + 1)) }
    const answers = async () =>
      Promise.all(
        NAMES.map(async (name) => {
          const { message } = await resolver.query({ server, name: `${name}.example.test`, type: 'A' })
          return message.rcode === RCODE.NOERROR ? groupRecords(message.answers)[0]?.values[0] : message.rcode
        }),
      )
    await expect.poll(answers, POLL_OPTIONS).toEqual(NAMES.map(() => '127.0.0.2'))
    await Promise.all(NAMES.map(async (name) => client.delete(DNSLoadBalancer, `shop/${name}`)))
    // Where no controller manager runs, the test collects garbage; together, since five that go before the others are not too many.
    await Promise.all(
      NAMES.map(async (name) => client.delete(DNSEndpoint, `shop/${name}-dnslb`).catch(() => undefined)),
    )
    const list = async () => (await runCommand(['approve', ...flags])).stdout
    await expect.poll(list, POLL_OPTIONS).toMatch(/^[0-9a-f]{12} {2}7 changes {2}ShrinkBreakerOpen/m)
    expect(await answers()).toEqual(NAMES.map(() => '127.0.0.2'))
    const ids = [...(await list()).matchAll(/seamark approve (\S+)/g)].map(([, id = '']) => id)
    expect(ids).toHaveLength(1)
    expect((await runCommand(['approve', ...ids, ...flags])).code).toBe(0)
    await expect.poll(answers, POLL_OPTIONS).toEqual(NAMES.map(() => RCODE.NXDOMAIN))
  } finally {
    await verb.stop()
    await resolver.close()
    backend.closeAllConnections()
    backend.close()
    await rm(folder, { recursive: true, force: true })
  }
})

it.each([
  ['no zone', ''],
  ['other zones', 'dns: { listen: ["127.0.0.1:0"], zones: [other.test] }\n'],
])('is held by balance in a process that serves %s: all endpoints are gone', async (_, dns) => {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-mass-deletion-'))
  await using environment = await FleetEnvironment.start([])
  const { client } = environment.hub
  const backend = createServer((_, response) => response.end('ok'))
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.2', resolve))
  await createLoadBalancers(client, (backend.address() as AddressInfo).port)
  const kubeconfig = join(folder, 'kubeconfig')
  const config = join(folder, 'seamark.yaml')
  await writeFile(kubeconfig, environment.hub.kubeconfig, { mode: 0o600 })
  await writeFile(
    config,
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
allowLoopback: true
logLevel: silent
publish: { enabled: false }
balance: { enabled: true, onAllUnhealthy: Remove }
${dns}`,
  )
  const flags = ['--kubeconfig', kubeconfig, '--config', config, '--namespace', 'manager']
  const verb = await startVerb('run', [...flags, '--metrics-address=0', '--probes-address=0'])
  try {
    const endpoints = async () => (await client.list(DNSEndpoint)).items.length
    await expect.poll(endpoints, POLL_OPTIONS).toBe(NAMES.length)
    const remove = async (names: readonly string[]) =>
      Promise.all(names.map(async (name) => client.delete(DNSLoadBalancerEndpoint, `shop/${name}`)))
    // Few may go.
    await remove(NAMES.slice(0, 1))
    await expect.poll(endpoints, POLL_OPTIONS).toBe(NAMES.length - 1)
    await remove(NAMES.slice(1))
    const list = async () => (await runCommand(['approve', ...flags])).stdout
    await expect.poll(list, POLL_OPTIONS).toMatch(/^b-[0-9a-f]{12} {2}6 changes {2}GuardTripped/m)
    expect(await endpoints()).toBe(NAMES.length - 1)
    const { status } = await client.get(DNSLoadBalancer, 'shop/lb-3')
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')
    expect(ready).toMatchObject({ status: 'False', reason: 'GuardTripped' })
    expect(ready?.message).toMatch(/6 of 6 load balancers would be removed at once.*seamark approve b-/)
    const [, id = ''] = /seamark approve (\S+)/.exec(await list()) ?? []
    expect((await runCommand(['approve', id, ...flags])).code).toBe(0)
    await expect.poll(endpoints, POLL_OPTIONS).toBe(0)
  } finally {
    await verb.stop()
    backend.closeAllConnections()
    backend.close()
    await rm(folder, { recursive: true, force: true })
  }
})
