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
  Forbidden,
  Secret,
  poll,
  systemClock,
} from '@seamark/kube'
import {
  Cluster,
  fleetCrds,
  isClusterName,
  MEMBER_NAMESPACES,
  MEMBER_ROLE,
  rulesOf,
  WILDCARD_ROLE,
} from '@seamark/operator'
import { Command } from 'commander'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addKubeFlags, DEFAULT_NAMESPACE, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'
import { applyAccount, CLI_FIELD_MANAGER, ensureNamespace, grantEverywhere } from './account.ts'
import { findCluster, showDrain } from './drain.ts'
import { installServed } from './hub-crds.ts'
import { isLoopbackServer } from './loopback.ts'
import { parseYaml, readText } from '../../manifest-files.ts'
import { addOutputFlag, printTable, printValue } from '../../output-form.ts'

/** Of the manager on each member. */
const ACCOUNT = { namespace: 'seamark-system', name: 'seamark-fleet' } as const
const WILDCARD_ROLE_NAME = 'seamark-wildcard'
const POLL_MS = 500

interface MemberFlags extends KubeFlags {
  name?: string
  namespace: string
  memberKubeconfig?: string
  tokenHours: string
  createNamespaces?: boolean
  label?: Readonly<Record<string, string>>
  wildcard?: boolean
}

interface RemoveFlags extends KubeFlags {
  namespace: string
  force?: boolean
  timeout: string
}

export function build(io: Io): Command {
  const command = new Command().description('member clusters of the fleet')
  const member = (subcommand: Command): Command =>
    addNamespaceFlag(addKubeFlags(subcommand))
      .option('--member-kubeconfig <file>', 'kubeconfig that has the context of the member; else the one of the hub')
      .option('--token-hours <hours>', 'life of the token', '8760')
  member(
    command.command('add').description('register a cluster: its ServiceAccount and role, the Secret and the Cluster'),
  )
    .argument('<context>', 'context of the member in the kubeconfig')
    .option('--name <name>', 'name of the Cluster; else that of the context')
    .option('--create-namespaces', 'create missing namespaces on the member')
    .option('--label <key=value>', 'label of the Cluster, for placement; may be repeated', readLabels)
    .option('--wildcard', 'also the right to read its nodes, for the wildcard of the cluster')
    .action(async (context: string, flags: MemberFlags) =>
      withHub(io, flags, async (hub) => add(io, hub, context, flags)),
    )
  addOutputFlag(
    addNamespaceFlag(addKubeFlags(command.command('list').description('clusters and their states'))),
    ['text', 'json', 'yaml'],
    'text',
  ).action(async (flags: KubeFlags & { output: 'text' | 'json' | 'yaml' }) =>
    withHub(io, flags, async (hub) => list(io, hub.client, flags.output)),
  )
  addNamespaceFlag(
    addKubeFlags(command.command('remove').description('drain a cluster, then remove it from the fleet')),
  )
    .argument('<name>')
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

function addNamespaceFlag(command: Command): Command {
  return command.option('-n, --namespace <name>', 'namespace of the manager on the hub', DEFAULT_NAMESPACE)
}

/** `KEY=VALUE`, or several with commas; the last one of a key counts. */
function readLabels(text: string, before: MemberFlags['label'] = {}): Record<string, string> {
  const labels = text.split(',').map((pair): [string, string] => {
    const [, key = '', value = ''] = /^([^=]*)=(.*)$/.exec(pair) ?? []
    if (!LABEL_KEY.test(key) || !LABEL_VALUE.test(value))
      throw new CommandError(`--label ${pair} is no label KEY=VALUE such as region=eu`, EXIT.usage)
    return [key, value]
  })
  return { ...before, ...Object.fromEntries(labels) }
}

const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/

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
  const say = (line: string): void => void io.stdout.write(`${line}\n`)
  await findSecret(hub.client, name, flags.namespace)
  const { kubeconfig, server } = await prepareMember(io, context, flags)
  await prepareHub(io, hub.client, flags.namespace, say)
  await writeSecret(hub.client, name, flags.namespace, kubeconfig)
  await hub.client.apply(
    Cluster,
    {
      metadata: { name, ...(flags.label !== undefined && { labels: { ...flags.label } }) },
      spec: {
        kubeconfigSecretRef: { name: secretName(name) },
        ...(flags.createNamespaces === true && { namespacePolicy: 'Create' }),
      },
    } as Cluster,
    CLI_FIELD_MANAGER,
  )
  if (isLoopbackServer(server))
    say(
      `its API server ${server} is on this machine: the manager takes it with allowLoopback: true in its configuration`,
    )
  if (flags.wildcard === true)
    say(
      'its nodes may be read; the manager publishes them with wildcard.enabled and wildcard.zone in its configuration',
    )
  say(`cluster ${name} is registered; seamark cluster list shows when it is ready`)
}

/** What a registration needs on a hub that `seamark hub init` has not seen. */
async function prepareHub(io: Io, client: Client, namespace: string, say: (line: string) => void): Promise<void> {
  if (await ensureNamespace(client, namespace)) say(`namespace ${namespace} is created`)
  const ours = fleetCrds().filter(({ spec }) => spec.names.kind === Cluster.kind)
  for (const { name, action } of await installServed(client, ours, io.signal)) say(`CRD ${name} is ${action}d`)
}

async function renew(io: Io, hub: Connection, context: string, flags: MemberFlags): Promise<void> {
  const name = flags.name ?? context
  const found = await findCluster(hub.client, name)
  await findSecret(hub.client, name, flags.namespace)
  const createNamespaces = found.spec.namespacePolicy === 'Create'
  const { kubeconfig } = await prepareMember(io, context, { ...flags, createNamespaces })
  await writeSecret(hub.client, name, flags.namespace, kubeconfig)
  io.stdout.write(`cluster ${name} has a new token\n`)
}

/** The account and its role on the member; returns a kubeconfig with a token of it. */
async function prepareMember(
  io: Io,
  context: string,
  flags: MemberFlags,
): Promise<{ readonly kubeconfig: string; readonly server: string }> {
  const hours = Number(flags.tokenHours)
  if (!Number.isInteger(hours) || hours < 1)
    throw new CommandError(`--token-hours ${flags.tokenHours} is no number of hours`, EXIT.usage)
  const path = flags.memberKubeconfig ?? flags.kubeconfig ?? io.env['KUBECONFIG'] ?? join(homedir(), '.kube/config')
  const text = await readText(path)
  const { server, ca } = await readServer(text, context, path)
  const member = connect(configFromText(text, { context }))
  try {
    await grant(member.client, flags)
    const token = await requestToken(member.client, hours)
    const kubeconfig = stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: context, cluster: { server, ...(ca !== undefined && { 'certificate-authority-data': ca }) } }],
      users: [{ name: ACCOUNT.name, user: { token } }],
      contexts: [{ name: context, context: { cluster: context, user: ACCOUNT.name } }],
      'current-context': context,
    })
    return { kubeconfig, server }
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

/** Rights that an earlier `--wildcard` gave stay: they are a role of their own. */
async function grant(client: Client, { createNamespaces, wildcard }: MemberFlags): Promise<void> {
  const rights = [...MEMBER_ROLE, ...(createNamespaces === true ? MEMBER_NAMESPACES : [])]
  await ensureNamespace(client, ACCOUNT.namespace)
  await applyAccount(client, ACCOUNT)
  await grantEverywhere(client, ACCOUNT, ACCOUNT.name, rulesOf(rights, 'cluster'))
  if (wildcard === true) await grantEverywhere(client, ACCOUNT, WILDCARD_ROLE_NAME, rulesOf(WILDCARD_ROLE, 'cluster'))
}

async function requestToken(client: Client, hours: number): Promise<string> {
  const path = `/api/v1/namespaces/${ACCOUNT.namespace}/serviceaccounts/${ACCOUNT.name}/token`
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

/**
 * The Secret that registers a cluster; undefined: there is none. Throws when it is in another namespace: the manager reads those of
 * its own namespace only.
 */
async function findSecret(client: Client, name: string, namespace: string): Promise<Secret | undefined> {
  const labelSelector = `seamark.io/cluster=${name}`
  const own = await client.list(Secret, { namespace, labelSelector })
  if (own.items[0] !== undefined) return own.items[0]
  const all = await client.list(Secret, { labelSelector }).catch((error: unknown) => {
    // The right to read those of one namespace is sufficient.
    if (error instanceof Forbidden) return own
    throw error
  })
  const other = all.items[0]?.metadata.namespace
  if (other === undefined) return undefined
  throw new CommandError(
    `cluster ${name} is registered in namespace ${other}, and its Secret is read there; repeat the command with -n ${other}`,
    EXIT.refused,
  )
}

async function writeSecret(client: Client, name: string, namespace: string, kubeconfig: string): Promise<void> {
  const found = await findSecret(client, name, namespace)
  await client.apply(
    Secret,
    {
      metadata: {
        name: found?.metadata.name ?? secretName(name),
        namespace,
        labels: { 'seamark.io/cluster': name },
      },
      data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
    },
    CLI_FIELD_MANAGER,
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
