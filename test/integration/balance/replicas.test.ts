/**
 * Two `seamark run` processes with balance and their own DNS servers: both answer, the one that does not lead follows every change
 * of health, and it goes on answering when the leader is killed. The zones are in folders, or in ConfigMaps.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CustomResourceDefinition, Namespace } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint, loadBalancerCrds } from '@seamark/operator'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { createNamespace, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { buildBundle, type ManagerProcess, startManager } from '../records/manager-process.ts'
import { ask, expectAnswer, POLL_OPTIONS, startBackends } from './backends.ts'

const [EAST, WEST] = ['127.0.0.2', '127.0.0.3']
const SECRET = Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64')

let environment: TestEnvironment
beforeAll(async () => {
  buildBundle()
  environment = await environmentKinds[0]!.start()
  if ((await environment.client.find(Namespace, 'kube-system')) === undefined)
    await createNamespace(environment.client, 'kube-system')
  for (const definition of loadBalancerCrds()) await environment.client.create(CustomResourceDefinition, definition)
}, 120_000)
afterAll(async () => environment?.[Symbol.asyncDispose]())

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

interface Replica extends ManagerProcess {
  readonly server: { readonly address: string; readonly port: number }
}

/** `own` are settings of one replica only. */
async function startReplicas(namespace: string, ownSettings: (replica: number) => string): Promise<Replica[]> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-replicas-'))
  cleanups.push(async () => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'kubeconfig'), environment.kubeconfig, { mode: 0o600 })
  const ports = [await freePort(), await freePort()]
  const addresses = ports.map((port) => `"127.0.0.1:${port}"`).join(', ')
  const replicas: Replica[] = []
  for (const [index, port] of ports.entries()) {
    const config = join(folder, `replica-${index}.yaml`)
    await writeFile(
      config,
      `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
allowLoopback: true
publish: { enabled: false }
installCRDs: false
balance: { enabled: true, resolver: "127.0.0.1:${port}" }
dns:
  listen: ["127.0.0.1:${port}"]
  zones: [${namespace}.test]
  keys: [{ name: seamark, secretFrom: { env: TSIG_SECRET } }]
  primaries: [${addresses}]
  secondaries: [${addresses}]
  ${ownSettings(index).replaceAll('FOLDER', folder)}
`,
    )
    const flags = ['--kubeconfig', join(folder, 'kubeconfig'), '--config', config, '--namespace', namespace]
    const manager = await startManager(flags, { TSIG_SECRET: SECRET })
    cleanups.push(async () => manager.kill())
    replicas.push({ ...manager, server: { address: '127.0.0.1', port } })
    // The first one leads.
    await expect.poll(() => manager.log(), POLL_OPTIONS).toMatch(/zone (created|loaded|transferred)/)
  }
  return replicas
}

describe('two replicas of seamark run', () => {
  it.each([
    { zones: 'folders', namespace: 'folders', ownSettings: (replica: number) => `dataDir: FOLDER/zones-${replica}` },
    { zones: 'ConfigMaps', namespace: 'configmaps', ownSettings: () => '' },
  ])('both answer from zones in $zones, and one goes on alone', async ({ namespace, ownSettings }) => {
    const { client } = environment
    const name = `shop.${namespace}.test`
    await createNamespace(client, namespace)
    const backends = await startBackends(EAST, WEST)
    cleanups.push(async () => backends.close())
    await client.create(DNSLoadBalancer, {
      metadata: { namespace, name: 'shop' },
      spec: {
        DNSName: name,
        healthPath: '/healthz',
        healthCheck: { scheme: 'http', port: backends.port, profile: 'fast' },
      },
    })
    for (const [endpoint, ipaddress] of Object.entries({ east: EAST, west: WEST }))
      await client.create(DNSLoadBalancerEndpoint, {
        metadata: { namespace, name: endpoint },
        spec: { loadbalancer: 'shop', ipaddress },
      })
    const [leader, follower] = await startReplicas(namespace, ownSettings)
    if (leader === undefined || follower === undefined) throw new Error('two replicas')
    try {
      for (const { server } of [leader, follower]) await expectAnswer(server, name, `${EAST} ${WEST}`)
      await backends.stop(EAST)
      for (const { server } of [leader, follower]) await expectAnswer(server, name, WEST)
      await leader.kill()
      expect(await ask(follower.server, name)).toBe(WEST)
      expect(follower.log()).not.toContain(SECRET)
    } catch (error) {
      throw new Error(`${String(error)}\n${leader.log()}\n${follower.log()}`, { cause: error })
    } finally {
      await client.delete(DNSLoadBalancer, `${namespace}/shop`)
    }
  })
})
