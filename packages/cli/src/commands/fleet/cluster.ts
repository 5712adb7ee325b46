/**
 * `seamark cluster add CONTEXT | list | remove NAME | token NAME`: member clusters of the fleet.
 *
 * `add` creates a ServiceAccount with the minimal role on the member, and a Secret with its kubeconfig and a Cluster on the
 * hub. The kubeconfig has a token and inline data only, as the manager accepts it.
 */
import { readFile } from 'node:fs/promises'
import {
  type Client,
  type Cluster as Connection,
  configFromText,
  connect,
  findCondition,
  kind,
  Namespace,
  type Obj,
  Secret,
  poll,
  systemClock,
} from '@seamark/kube'
import { Cluster, isClusterName, MEMBER_RIGHTS } from '@seamark/operator'
import { Command } from 'commander'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addKubeFlags, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'
import { findCluster, showDrain } from './drain.ts'
import { parseYaml, readText } from '../../manifest-files.ts'
import { addOutputFlag, printTable, printValue } from '../../output-form.ts'

const ServiceAccount = kind<Obj>({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
})
const ClusterRole = kind<Obj & { rules?: unknown[] }>({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
})
const ClusterRoleBinding = kind<Obj & { roleRef?: unknown; subjects?: unknown[] }>({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
})

const ACCOUNT = 'seamark-fleet'
const ACCOUNT_NAMESPACE = 'seamark-system'
const POLL_MS = 500

interface MemberFlags extends KubeFlags {
  name?: string
  namespace: string
  memberKubeconfig?: string
  tokenHours: string
  createNamespaces?: boolean
}

interface RemoveFlags extends KubeFlags {
  namespace: string
  force?: boolean
  timeout: string
}

export function build(io: Io): Command {
  const command = new Command().description('member clusters of the fleet')
  const member = (subcommand: Command): Command =>
    addKubeFlags(subcommand)
      .option('-n, --namespace <name>', 'namespace of the manager on the hub', 'seamark')
      .option('--member-kubeconfig <file>', 'kubeconfig that has the context of the member; else the one of the hub')
      .option('--token-hours <hours>', 'life of the token', '8760')
  member(
    command.command('add').description('register a cluster: its ServiceAccount and role, the Secret and the Cluster'),
  )
    .argument('<context>', 'context of the member in the kubeconfig')
    .option('--name <name>', 'name of the Cluster; else that of the context')
    .option('--create-namespaces', 'create missing namespaces on the member')
    .action(async (context: string, flags: MemberFlags) =>
      withHub(io, flags, async (hub) => add(io, hub, context, flags)),
    )
  addOutputFlag(
    addKubeFlags(command.command('list').description('clusters and their states')),
    ['text', 'json', 'yaml'],
    'text',
  ).action(async (flags: KubeFlags & { output: 'text' | 'json' | 'yaml' }) =>
    withHub(io, flags, async (hub) => list(io, hub.client, flags.output)),
  )
  addKubeFlags(command.command('remove').description('drain a cluster, then remove it from the fleet'))
    .argument('<name>')
    .option('-n, --namespace <name>', 'namespace of the manager on the hub', 'seamark')
    .option('--force', 'do not drain: leaves stay on the member until they are deleted by hand')
    .option('--timeout <seconds>', 'how long to wait for the drain', '900')
    .action(async (name: string, flags: RemoveFlags) =>
      withHub(io, flags, async (hub) => remove(io, hub.client, name, flags)),
    )
  member(command.command('token').description('replace the token of a registered cluster; watches go on'))
    .argument('<context>', 'context of the member in the kubeconfig')
    .option('--name <name>', 'name of the Cluster; else that of the context')
    .action(async (context: string, flags: MemberFlags) =>
      withHub(io, flags, async (hub) => renew(io, hub, context, flags)),
    )
  return command
}

async function withHub(io: Io, flags: KubeFlags, run: (hub: Connection) => Promise<void>): Promise<void> {
  const hub = await openCluster(io, flags)
  try {
    await run(hub)
  } finally {
    await hub.close()
  }
}

async function add(io: Io, hub: Connection, context: string, flags: MemberFlags): Promise<void> {
  const name = flags.name ?? context
  if (!isClusterName(name))
    throw new CommandError(
      `${name} is no cluster name: a DNS label of at most 40 characters; give one with --name`,
      EXIT.usage,
    )
  const kubeconfig = await prepareMember(io, context, flags)
  await writeSecret(hub.client, name, flags.namespace, kubeconfig)
  await hub.client.apply(
    Cluster,
    {
      metadata: { name },
      spec: {
        kubeconfigSecretRef: { name: secretName(name) },
        ...(flags.createNamespaces === true && { namespacePolicy: 'Create' }),
      },
    } as Cluster,
    { fieldManager: 'seamark-cli' },
  )
  io.stdout.write(`cluster ${name} is registered; seamark cluster list shows when it is ready\n`)
}

async function renew(io: Io, hub: Connection, context: string, flags: MemberFlags): Promise<void> {
  const name = flags.name ?? context
  await findCluster(hub.client, name)
  await writeSecret(hub.client, name, flags.namespace, await prepareMember(io, context, flags))
  io.stdout.write(`cluster ${name} has a new token\n`)
}

/** The account and its role on the member; returns a kubeconfig with a token of it. */
async function prepareMember(io: Io, context: string, flags: MemberFlags): Promise<string> {
  const hours = Number(flags.tokenHours)
  if (!Number.isInteger(hours) || hours < 1)
    throw new CommandError(`--token-hours ${flags.tokenHours} is no number of hours`, EXIT.usage)
  const path = flags.memberKubeconfig ?? flags.kubeconfig ?? io.env['KUBECONFIG'] ?? join(homedir(), '.kube/config')
  const text = await readText(path)
  const { server, ca } = await readServer(text, context, path)
  const member = connect(configFromText(text, { context }))
  try {
    await grant(member.client, flags.createNamespaces === true)
    const token = await requestToken(member.client, hours)
    return stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: context, cluster: { server, ...(ca !== undefined && { 'certificate-authority-data': ca }) } }],
      users: [{ name: ACCOUNT, user: { token } }],
      contexts: [{ name: context, context: { cluster: context, user: ACCOUNT } }],
      'current-context': context,
    })
  } finally {
    await member.close()
  }
}

interface Kubeconfig {
  readonly clusters?: readonly { readonly name: string; readonly cluster?: Record<string, string | undefined> }[]
  readonly contexts?: readonly { readonly name: string; readonly context?: { readonly cluster?: string } }[]
}

async function readServer(
  text: string,
  context: string,
  path: string,
): Promise<{ server: string; ca: string | undefined }> {
  const [document] = parseYaml(path, text) as (Kubeconfig | null)[]
  const cluster = document?.contexts?.find(({ name }) => name === context)?.context?.cluster
  const found = document?.clusters?.find(({ name }) => name === cluster)?.cluster
  const server = found?.['server']
  if (server === undefined) throw new CommandError(`${path} has no context ${context} with a server`)
  const file = found?.['certificate-authority']
  const ca =
    found?.['certificate-authority-data'] ??
    (file === undefined ? undefined : (await readFile(file)).toString('base64'))
  return { server, ca }
}

async function grant(client: Client, createsNamespaces: boolean): Promise<void> {
  const options = { fieldManager: 'seamark-cli' }
  const rules = MEMBER_RIGHTS.map(({ group, resource, verbs }) => ({
    apiGroups: [group],
    resources: [resource],
    verbs: [...verbs],
  }))
  if (createsNamespaces) rules.push({ apiGroups: [''], resources: ['namespaces'], verbs: ['create'] })
  await client.apply(Namespace, { metadata: { name: ACCOUNT_NAMESPACE } }, options)
  await client.apply(ServiceAccount, { metadata: { name: ACCOUNT, namespace: ACCOUNT_NAMESPACE } }, options)
  await client.apply(ClusterRole, { metadata: { name: ACCOUNT }, rules }, options)
  await client.apply(
    ClusterRoleBinding,
    {
      metadata: { name: ACCOUNT },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: ACCOUNT },
      subjects: [{ kind: 'ServiceAccount', name: ACCOUNT, namespace: ACCOUNT_NAMESPACE }],
    },
    options,
  )
}

async function requestToken(client: Client, hours: number): Promise<string> {
  const path = `/api/v1/namespaces/${ACCOUNT_NAMESPACE}/serviceaccounts/${ACCOUNT}/token`
  const body = JSON.stringify({
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: hours * 3600 },
  })
  const response = await client.request({ method: 'POST', path, headers: { 'content-type': 'application/json' }, body })
  if (response.status >= 300) throw new CommandError(`POST ${path} answers ${response.status}`)
  const { status } = JSON.parse(response.body.toString('utf8')) as { status?: { token?: string } }
  if (status?.token === undefined) throw new CommandError('the member returned no token')
  return status.token
}

function secretName(name: string): string {
  return `${name}-kubeconfig`
}

async function writeSecret(client: Client, name: string, namespace: string, kubeconfig: string): Promise<void> {
  const { items } = await client.list(Secret, { namespace, labelSelector: `seamark.io/cluster=${name}` })
  await client.apply(
    Secret,
    {
      metadata: {
        name: items[0]?.metadata.name ?? secretName(name),
        namespace,
        labels: { 'seamark.io/cluster': name },
      },
      data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
    },
    { fieldManager: 'seamark-cli' },
  )
}

async function list(io: Io, client: Client, form: 'text' | 'json' | 'yaml'): Promise<void> {
  const { items } = await client.list(Cluster)
  if (form !== 'text') {
    io.stdout.write(printValue(form, items))
    return
  }
  const rows = items.map(({ metadata, spec, status }) => {
    const ready = findCondition(status?.conditions, 'Ready')
    return [
      metadata.name ?? '',
      ready?.status ?? 'Unknown',
      ready?.reason ?? '',
      String(spec.weight),
      spec.drain?.enabled === true ? 'draining' : '-',
      String(status?.leafCount ?? 0),
      status?.version ?? '',
      ready?.status === 'True' ? '' : (ready?.message ?? ''),
    ]
  })
  io.stdout.write(printTable(['NAME', 'READY', 'REASON', 'WEIGHT', 'DRAIN', 'LEAVES', 'VERSION', 'MESSAGE'], rows))
}

async function remove(io: Io, client: Client, name: string, flags: RemoveFlags): Promise<void> {
  await findCluster(client, name)
  const timeoutMs = Number(flags.timeout) * 1000
  if (!Number.isFinite(timeoutMs) || timeoutMs <= 0)
    throw new CommandError(`--timeout ${flags.timeout} is no number of seconds`, EXIT.usage)
  await showDrain(io, client, name, flags.force === true)
  if (flags.force === true)
    await client.patch(Cluster, name, 'merge', { metadata: { annotations: { 'seamark.io/force-detach': 'true' } } })
  await client.delete(Cluster, name)
  io.stdout.write(
    flags.force === true
      ? `cluster ${name} is removed without a drain; its leaves stay on the member\n`
      : `cluster ${name} is drained, and then removed\n`,
  )
  const { signal } = io
  const isGone = async () => ((await client.find(Cluster, name)) === undefined ? true : undefined)
  const hasGone = await poll(isGone, { clock: systemClock, intervalMs: POLL_MS, timeoutMs, signal })
  if (hasGone === undefined) {
    if (signal.aborted) return
    throw new CommandError(`leaves are still on cluster ${name}; see seamark cluster list`, EXIT.timeout)
  }
  // The Secret is deleted last: without it nothing can be deleted on the member.
  const { items } = await client.list(Secret, {
    namespace: flags.namespace,
    labelSelector: `seamark.io/cluster=${name}`,
  })
  for (const { metadata } of items) await client.delete(Secret, `${flags.namespace}/${metadata.name}`)
  io.stdout.write(`cluster ${name} is removed\n`)
}
