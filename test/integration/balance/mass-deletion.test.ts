/**
 * Load balancers that are deleted at once, with the DNSEndpoints that they own: their names are answered until one approval,
 * which is that of the records.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, groupRecords, RCODE } from '@seamark/dns'
import { DNSEndpoint, DNSLoadBalancer, DNSLoadBalancerEndpoint } from '@seamark/operator'
import { expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS } from '../fleet/test-environment.ts'
import { startVerb } from '../gateway/started-verb.ts'
import { untilKindIsOlder } from '../publish/test-environment.ts'
import { runCommand } from '../records/run-command.ts'

const NAMES = Array.from({ length: 7 }, (_, index) => `lb-${index}`)

it('is held by records, and one approval lets it pass', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-mass-deletion-'))
  await using environment = await FleetEnvironment.start([])
  const { client } = environment.hub
  await untilKindIsOlder(client)
  const backend = createServer((_, response) => response.end('ok'))
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.2', resolve))
  const { port } = backend.address() as AddressInfo
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
