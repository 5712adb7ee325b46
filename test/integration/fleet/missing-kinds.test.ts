/** A manager that lacks a kind or a right says which, with the verbs and what to do: on the root, in /readyz and in explain. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CustomResourceDefinition, findCondition, Ingress } from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'
import { loadConfig } from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { describe, expect, it } from 'vitest'
import { runCommand } from '../records/run-command.ts'
import { FleetEnvironment, POLL_OPTIONS, root } from './test-environment.ts'

const CRD = 'dnsendpoints.externaldns.k8s.io'
const rbac = (kind: string, plural: string) =>
  ({ group: 'rbac.authorization.k8s.io', version: 'v1', kind, plural, namespaced: false }) as Kind<
    Obj & Record<string, unknown>
  >
const ClusterRole = rbac('ClusterRole', 'clusterroles')
const ClusterRoleBinding = rbac('ClusterRoleBinding', 'clusterrolebindings')
const HOST = 'shop.example.com'

/** A root with an admitted leaf, and a manager that balances; `/readyz` and what is said about the root. */
async function start(environment: FleetEnvironment) {
  const { client } = environment.hub
  await environment.register('eu1')
  await environment.deploy('eu1')
  await client.create(Ingress, root('shop', HOST))
  const loaded = loadConfig({ flags: { 'balance-enabled': 'true' } })
  if (!loaded.ok) throw new Error(loaded.faults.join('; '))
  const probes = await new Promise<string>((resolve) => {
    environment.run(
      {},
      {
        balance: { config: loaded.config.balance, startThread: proberInThisThread(20) },
        probes: '127.0.0.1:0',
        onReady: ({ probes: address = '' }) => resolve(address),
      },
    )
  })
  await environment.admit('eu1', 'shop/shop', '127.0.0.1')
  return {
    readyz: async () => {
      const response = await fetch(`http://${probes}/readyz`)
      return `${response.status} ${await response.text()}`
    },
    condition: async (type: string) => {
      const condition = findCondition((await environment.global())?.status?.conditions, type)
      return `${condition?.status} ${condition?.reason}: ${condition?.message}`
    },
    said: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'seamark-kinds-'))
      try {
        const kubeconfig = join(folder, 'kubeconfig')
        await writeFile(kubeconfig, environment.hub.kubeconfig, { mode: 0o600 })
        const explained = await runCommand(['explain', HOST, '--kubeconfig', kubeconfig, '-n', 'manager'])
        const tree = await runCommand(['tree', HOST, '--kubeconfig', kubeconfig])
        return [explained.stdout.split('\n')[0], tree.stdout.trimEnd().split('\n').at(-1), explained.code]
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    },
  }
}

describe('a manager that cannot publish hosts', () => {
  it('names the CRD that is absent, and goes on when it is installed', async () => {
    await using environment = await FleetEnvironment.start(['eu1'])
    const { client } = environment.hub
    const { metadata, spec } = await client.get(CustomResourceDefinition, CRD)
    await client.delete(CustomResourceDefinition, CRD)
    await expect.poll(async () => client.find(CustomResourceDefinition, CRD), POLL_OPTIONS).toBeUndefined()
    const { readyz, condition, said } = await start(environment)
    const text = new RegExp(
      `CRDNotInstalled: .*DNSEndpoint \\(${CRD}\\) is not installed, so that it can be neither watched nor written; install its CRD`,
    )
    for (const type of ['DNSPublished', 'Degraded', 'Ready'])
      await expect.poll(async () => condition(type), POLL_OPTIONS).toMatch(text)
    expect(await readyz()).toMatch(/^500 [^]*\[-\]kinds failed: CRDNotInstalled: DNSEndpoint/)
    const line = `${HOST} is broken at endpoint: the API server does not serve a kind; the object is written once its CRD is installed`
    expect(await said()).toEqual([line, line, 2])

    await client.create(CustomResourceDefinition, {
      metadata: { name: CRD, annotations: metadata.annotations ?? {} },
      spec,
    })
    await expect.poll(readyz, POLL_OPTIONS).toBe('200 ok')
    await expect.poll(async () => condition('Degraded'), POLL_OPTIONS).not.toContain('CRDNotInstalled')
  })

  it('names the right that is missing', async () => {
    await using environment = await FleetEnvironment.start(['eu1'])
    const { client } = environment.hub
    const groups = [
      '',
      'apiextensions.k8s.io',
      'coordination.k8s.io',
      'discovery.k8s.io',
      'events.k8s.io',
      'gateway.networking.k8s.io',
      'loadbalancer.gardener.cloud',
      'networking.k8s.io',
      'route.openshift.io',
      'seamark.io',
    ]
    await client.create(ClusterRole, {
      metadata: { name: 'short' },
      rules: [{ apiGroups: groups, resources: ['*'], verbs: ['*'] }],
    })
    await client.create(ClusterRoleBinding, {
      metadata: { name: 'short' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'short' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'short' }],
    })
    const kubeconfig = await environment.hub.userKubeconfig('short')
    await using limited = new FleetEnvironment(
      { ...environment.hub, kubeconfig, stop: async () => undefined },
      environment.members,
    )
    const { readyz, condition } = await start(limited)
    const text = new RegExp(
      `${CRD} cannot be listed and watched; allow list and watch of ${CRD} in the ClusterRole of the manager: .*forbidden`,
    )
    for (const type of ['DNSPublished', 'Degraded', 'Ready'])
      await expect.poll(async () => condition(type), POLL_OPTIONS).toMatch(text)
    expect(await readyz()).toMatch(text)
  })
})
