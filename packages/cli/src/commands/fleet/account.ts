/** Accounts and their rights, as `hub init` and `cluster add` create them: of the manager, and of the manager on a member. */
import { type Client, kind, Namespace, type Obj } from '@seamark/kube'
import type { Rule } from '@seamark/operator'

type Bound = Obj & { roleRef?: unknown; subjects?: unknown[] }

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const

const ServiceAccount = kind<Obj>({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
})
const ClusterRole = kind<Obj & { rules?: readonly Rule[] }>({
  ...rbac,
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
})
const ClusterRoleBinding = kind<Bound>({
  ...rbac,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
})
const Role = kind<Obj & { rules?: readonly Rule[] }>({ ...rbac, kind: 'Role', plural: 'roles', namespaced: true })
const RoleBinding = kind<Bound>({ ...rbac, kind: 'RoleBinding', plural: 'rolebindings', namespaced: true })

/** Of what the commands of the fleet apply. */
export const CLI_FIELD_MANAGER = { fieldManager: 'seamark-cli' } as const

export interface Account {
  readonly namespace: string
  readonly name: string
}

/** True: it was created. An existing one is left as it is. */
export async function ensureNamespace(client: Client, name: string): Promise<boolean> {
  if ((await client.find(Namespace, name)) !== undefined) return false
  await client.apply(Namespace, { metadata: { name } }, CLI_FIELD_MANAGER)
  return true
}

export async function applyAccount(client: Client, metadata: Account): Promise<void> {
  await client.apply(ServiceAccount, { metadata: { ...metadata } }, CLI_FIELD_MANAGER)
}

/** What somebody changed in a role of ours is corrected. */
const CORRECTING = { ...CLI_FIELD_MANAGER, force: true } as const

/** A ClusterRole of that name, with exactly these rules, and its binding to the account. */
export async function grantEverywhere(
  client: Client,
  account: Account,
  name: string,
  rules: readonly Rule[],
): Promise<void> {
  await client.apply(ClusterRole, { metadata: { name }, rules }, CORRECTING)
  await client.apply(ClusterRoleBinding, { metadata: { name }, ...bindingOf('ClusterRole', name, account) }, CORRECTING)
}

/** A Role in the namespace of the account. */
export async function grantAtHome(
  client: Client,
  account: Account,
  name: string,
  rules: readonly Rule[],
): Promise<void> {
  const metadata = { namespace: account.namespace, name }
  await client.apply(Role, { metadata, rules }, CORRECTING)
  await client.apply(RoleBinding, { metadata, ...bindingOf('Role', name, account) }, CORRECTING)
}

function bindingOf(kindOfRole: string, name: string, account: Account): Pick<Bound, 'roleRef' | 'subjects'> {
  return {
    roleRef: { apiGroup: rbac.group, kind: kindOfRole, name },
    subjects: [{ kind: 'ServiceAccount', name: account.name, namespace: account.namespace }],
  }
}
