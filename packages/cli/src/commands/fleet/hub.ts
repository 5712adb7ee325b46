/**
 * `seamark hub init`: what a hub needs before its first manager (namespace, CRDs, the class of roots, the account of a manager
 * with its rights), and the configuration to run it with. Nothing that exists is taken over: it can be repeated.
 */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { type Client, CustomResourceDefinition, IngressClass, messageOf, Namespace } from '@seamark/kube'
import { dnsEndpointCrd, fleetCrds, loadBalancerCrds, loadConfig } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addKubeFlags, DEFAULT_NAMESPACE, type KubeFlags, openCluster, readKubeConfig } from '../../flags/kube-flags.ts'
import { applyAccount, CLI_FIELD_MANAGER, ensureNamespace, grantAtHome, grantEverywhere } from './account.ts'
import { DNS_LISTEN, hubConfig } from './hub-config.ts'
import { installAbsent, installServed } from './hub-crds.ts'
import { HOME_RULES, HUB_RULES } from './hub-rights.ts'
import { isLoopbackServer } from './loopback.ts'

interface Flags extends KubeFlags {
  namespace: string
  zone?: string
  dryRun?: boolean
}

const ACCOUNT = 'seamark'
/** Of its Role; its ClusterRole is one of each namespace that has a manager. */
const ROLE = 'seamark-hub'
const ROOT_CLASS = 'global'
const ROOT_CONTROLLER = 'seamark.io/global'
const CONFIG_FILE = './seamark.yaml'

export function build(io: Io): Command {
  const command = new Command().description('prepare the hub of a fleet')
  addKubeFlags(
    command
      .command('init')
      .description('create what a hub needs, and ./seamark.yaml, with which its manager is started'),
  )
    .option('-n, --namespace <name>', 'namespace of the manager', DEFAULT_NAMESPACE)
    .option(
      '--zone <zone>',
      'DNS zone of the hosts, which the manager answers itself; else DNSEndpoints are left to ExternalDNS',
    )
    .option('--dry-run', 'print what would be created, and the configuration; write nothing')
    .action(async (flags: Flags) => init(io, flags))
  return command
}

async function init(io: Io, flags: Flags): Promise<void> {
  const hub = await openCluster(io, flags)
  try {
    const isLocal = isLoopbackServer((await readKubeConfig(io, flags)).server)
    const zone = flags.zone?.toLowerCase().replace(/\.$/, '')
    const text = hubConfig({ namespace: flags.namespace, zone, isLocal })
    const loaded = loadConfig({ file: text })
    if (!loaded.ok) throw new CommandError(loaded.faults.join('\n'), EXIT.usage)
    const say = (line: string): void => void io.stdout.write(`${line}\n`)
    if (flags.dryRun === true) await preview(hub.client, flags.namespace, text, say)
    else {
      await checkConfigFile()
      await prepare(hub.client, flags.namespace, io.signal, say)
      await writeConfig(text, { ...flags, ...(zone !== undefined && { zone }) }, say)
    }
  } finally {
    await hub.close()
  }
}

type Say = (line: string) => void

async function prepare(client: Client, namespace: string, signal: AbortSignal, say: Say): Promise<void> {
  const isCreated = await ensureNamespace(client, namespace)
  say(`namespace ${namespace} ${isCreated ? 'is created' : 'exists'}`)
  const ours = [...fleetCrds(), ...loadBalancerCrds()]
  const written = await installServed(client, ours, signal)
  for (const action of ['create', 'update'] as const) {
    const names = written.filter((each) => each.action === action).map(({ name }) => name)
    if (names.length > 0) say(`CRDs are ${action}d: ${names.join(', ')}`)
  }
  if (written.length < ours.length) say(`${ours.length - written.length} CRDs of Seamark are current`)
  const endpoint = dnsEndpointCrd()
  const isEndpointCreated = await installAbsent(client, endpoint, signal)
  say(`CRD ${endpoint.metadata.name} ${isEndpointCreated ? 'is created' : 'exists and is left as it is'}`)
  say(await ensureClass(client))
  const account = { namespace, name: ACCOUNT }
  await applyAccount(client, account)
  await grantEverywhere(client, account, `${ROLE}-${namespace}`, HUB_RULES)
  await grantAtHome(client, account, ROLE, HOME_RULES)
  say(`ServiceAccount ${namespace}/${ACCOUNT} has the rights of a manager`)
}

async function ensureClass(client: Client): Promise<string> {
  const found = await client.find(IngressClass, ROOT_CLASS)
  if (found === undefined) {
    const spec = { controller: ROOT_CONTROLLER }
    await client.apply(IngressClass, { metadata: { name: ROOT_CLASS }, spec }, CLI_FIELD_MANAGER)
    return `IngressClass ${ROOT_CLASS} is created: Ingresses of this class are roots`
  }
  const { controller } = found.spec ?? {}
  return controller === ROOT_CONTROLLER
    ? `IngressClass ${ROOT_CLASS} exists`
    : `IngressClass ${ROOT_CLASS} is one of ${controller}, and left as it is: create one with the controller ${ROOT_CONTROLLER}`
}

async function preview(client: Client, namespace: string, text: string, say: Say): Promise<void> {
  const line = (what: string, isThere: boolean): void => say(`${what}: ${isThere ? 'exists' : 'would be created'}`)
  line(`namespace ${namespace}`, (await client.find(Namespace, namespace)) !== undefined)
  for (const { metadata } of [...fleetCrds(), ...loadBalancerCrds(), dnsEndpointCrd()]) {
    const name = metadata.name ?? ''
    line(`CRD ${name}`, (await client.find(CustomResourceDefinition, name)) !== undefined)
  }
  line(`IngressClass ${ROOT_CLASS}`, (await client.find(IngressClass, ROOT_CLASS)) !== undefined)
  say(
    `ServiceAccount ${namespace}/${ACCOUNT}, ClusterRole ${ROLE}-${namespace}, Role ${namespace}/${ROLE}: would be applied`,
  )
  const existing = await readExisting()
  say(
    existing === undefined
      ? `${CONFIG_FILE}: would be written:`
      : `${CONFIG_FILE}: exists and would be left as it is; else:`,
  )
  say(`---\n${text.trimEnd()}`)
}

async function readExisting(): Promise<string | undefined> {
  return readFile(CONFIG_FILE, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new CommandError(
      `${CONFIG_FILE} cannot be read: ${messageOf(error)}; move it away, or run the command in another folder`,
    )
  })
}

/** Before anything is written to the hub: a file can be created, or is there. */
async function checkConfigFile(): Promise<void> {
  if ((await readExisting()) !== undefined) return
  await createConfig('')
  await rm(CONFIG_FILE)
}

async function createConfig(text: string): Promise<void> {
  await writeFile(CONFIG_FILE, text, { flag: 'wx' }).catch((error: unknown) => {
    throw new CommandError(
      `${CONFIG_FILE} cannot be written: ${messageOf(error)}; run the command in a folder that this user may write to, or print the configuration with --dry-run`,
    )
  })
}

async function writeConfig(text: string, { namespace, zone }: Flags, say: Say): Promise<void> {
  const existing = await readExisting()
  if (existing === undefined) {
    await createConfig(text)
    say(
      zone === undefined
        ? `${CONFIG_FILE} is written: without a zone DNSEndpoints are left to ExternalDNS`
        : `${CONFIG_FILE} is written: zone ${zone}, answered on ${DNS_LISTEN}`,
    )
  } else if (existing === text) say(`${CONFIG_FILE} is as it would be written`)
  else say(`${CONFIG_FILE} exists and is left as it is; to have it written, move it away and repeat the command`)
  const where = namespace === DEFAULT_NAMESPACE ? '' : ` -n ${namespace}`
  say(`next: seamark cluster add CONTEXT${where}, for each member`)
  say('      seamark run --config seamark.yaml')
}
