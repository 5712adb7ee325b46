/**
 * examples/fleet/generated-kinds.yaml: a user with every right of RBAC writes no kind that only the manager writes. On a real
 * API server only: the embedded one has no ValidatingAdmissionPolicy.
 */
import { needs } from '@seamark/kit'
import { type Client, configFromText, connect, Namespace } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import { DomainVerification, fleetCrds, GlobalIngressPolicy, HostClaim, LeafIngress } from '@seamark/operator'
import { expect, it } from 'vitest'
import { startReal } from '../fleet/test-environment.ts'
import { applyExample } from './manifests.ts'

const ClusterRoleBinding = kind<Obj & { roleRef: object; subjects: object[] }>({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
})
const MANAGER = 'system:serviceaccount:seamark:seamark'
const REFUSAL = 'only the Seamark manager writes this kind'

const leaf = (name: string) =>
  ({
    metadata: { namespace: 'shop', name },
    spec: { cluster: 'eu1', manifests: [], specHash: 'x', lifecycle: 'Active' },
  }) as LeafIngress

it.skipIf(!needs('kube-apiserver', 'etcd'))('only the manager writes what the manager generates', async () => {
  const server = await startReal(fleetCrds())
  const closes: (() => Promise<void>)[] = []
  const as = async (user: string): Promise<Client> => {
    const connection = connect(configFromText(await server.userKubeconfig(user)), { fieldManager: 'contour-plus' })
    closes.push(async () => connection.close())
    await server.client.create(ClusterRoleBinding, {
      metadata: { name: user.replaceAll(':', '-') },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    })
    return connection.client
  }
  try {
    await server.client.create(Namespace, { metadata: { name: 'shop' } })
    const [tenant, manager] = [await as('tenant'), await as(MANAGER)]
    await expect.poll(async () => manager.list(LeafIngress).then(() => true), { timeout: 30_000 }).toBe(true)
    await applyExample(server.client, 'fleet/generated-kinds.yaml')
    let count = 0
    const attempt = async () => tenant.create(LeafIngress, leaf(`t${count++}`)).then(() => 'created', String)
    // A policy is in effect shortly after it was written.
    await expect.poll(attempt, { timeout: 30_000 }).toContain(REFUSAL)
    await manager.apply(LeafIngress, leaf('own'))
    await manager.patch(LeafIngress, 'shop/own', 'merge', { status: { phase: 'Active' } }, { subresource: 'status' })
    const claim = { spec: { host: 'a.test', namespace: 'shop', owners: [] } }
    await manager.create(HostClaim, { metadata: { name: 'own' }, ...claim })
    const domain = { metadata: { namespace: 'shop', name: 'd' }, spec: { domain: 'a.test' } } as DomainVerification
    await tenant.create(DomainVerification, domain)
    await tenant.create(GlobalIngressPolicy, { metadata: { namespace: 'shop', name: 'p' }, spec: {} } as never)
    const status = { subresource: 'status' }
    for (const write of [
      async () => tenant.patch(LeafIngress, 'shop/own', 'merge', { spec: { cluster: 'us1' } }),
      async () => tenant.patch(LeafIngress, 'shop/own', 'merge', { status: { phase: 'Drained' } }, status),
      async () => tenant.delete(LeafIngress, 'shop/own'),
      async () => tenant.delete(HostClaim, 'own'),
      async () => tenant.create(HostClaim, { metadata: { name: 'taken' }, ...claim }).then(() => undefined),
      async () => tenant.patch(DomainVerification, 'shop/d', 'merge', { status: { verified: true } }, status),
    ])
      await expect(write()).rejects.toThrow(REFUSAL)
    await manager.delete(LeafIngress, 'shop/own')
  } finally {
    for (const close of closes) await close()
    await server.stop()
  }
})
