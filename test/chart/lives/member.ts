/** A registered cluster: a kube-apiserver with the accounts that `seamark cluster add` creates. */
import { Namespace, Secret } from '@seamark/kube'
import type { AuditedPlane } from '../audited-plane.ts'
import { accountKubeconfig } from '../manager.ts'
import { type MemberCluster, put } from './life.ts'

export const MEMBER_NAMESPACE = 'seamark-system'

export function memberCluster(plane: AuditedPlane): MemberCluster {
  const { client } = plane
  return {
    client,
    async namespace(name) {
      if ((await client.find(Namespace, name)) === undefined) await client.create(Namespace, { metadata: { name } })
    },
    async register(world, name, account) {
      await put(world, Secret, {
        metadata: { namespace: world.home, name, labels: { 'seamark.io/cluster': name } },
        stringData: { kubeconfig: await accountKubeconfig(plane.plane, client, `${MEMBER_NAMESPACE}/${account}`) },
      })
    },
  }
}
