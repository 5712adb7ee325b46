/**
 * `seamark approve ID`: lets a set of held changes pass, once, within an hour. Without an id it lists what is held.
 * The approval is recorded in the guard state; a running manager is requested to plan again.
 */
import { AlreadyExists, type Cluster, ConfigMap } from '@seamark/kube'
import {
  approveCommand,
  approveInStore,
  type ApprovalReport,
  configMapGuardStore,
  CONFIGURATION_OBJECT,
  type GuardStore,
  HELD_ID_PREFIX,
  HELD_OBJECTS_STORE,
  type HeldChange,
  REASONS,
  VERIFY_ANNOTATION,
} from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addRecordsFlags, type RecordsFlags, withStores } from './records-session.ts'

export function build(io: Io): Command {
  const command = new Command()
    .description('let a set of held changes pass, once, within an hour; without an id, list what is held')
    .argument('[ids...]', 'ids of held sets, as messages about held changes name them')
  addRecordsFlags(command)
  return command.action(async (ids: string[], flags: RecordsFlags & Record<string, unknown>) =>
    withStores(io, flags, async (stores) => (ids.length === 0 ? list(io, stores) : approve(io, ids, stores)), {
      needsCluster: ids.some(isObjectId),
    }),
  )
}

type Stores = Parameters<Parameters<typeof withStores>[2]>[0]

/** Held objects of publish are in the cluster; held records are where records has its state. */
function isObjectId(id: string): boolean {
  return id.startsWith(HELD_ID_PREFIX)
}

function objectStore({ cluster, namespace }: Stores): GuardStore | undefined {
  return cluster === undefined ? undefined : configMapGuardStore(cluster.client, `${namespace}/${HELD_OBJECTS_STORE}`)
}

async function approve(io: Io, ids: readonly string[], stores: Stores): Promise<void> {
  const { store, cluster, namespace } = stores
  const reports: ApprovalReport[] = []
  for (const id of ids) {
    const holder = isObjectId(id) ? (objectStore(stores) ?? store) : store
    reports.push(await approveInStore(holder, id, Date.now(), { mayRepeat: true }))
  }
  for (const report of reports) io.stdout.write(print(report))
  const hasRecords = reports.some((report) => isInEffect(report) && !isObjectId(report.id))
  if (cluster !== undefined && hasRecords) await askForPass(cluster, namespace)
  const refused = reports.filter((report) => !isInEffect(report))
  if (refused.length === 0) return
  const others = [...(await heldSets(stores)).keys()].map((id) => approveCommand(id)).join(', ')
  throw new CommandError(
    refused.map(({ id, result }) => `${id}: ${refusal(result)}`).join('; ') +
      (others === '' ? '; nothing is held' : `; held now: ${others}`),
    EXIT.refused,
  )
}

function isInEffect({ result }: ApprovalReport): boolean {
  return result === 'approved' || result === 'active'
}

function refusal(result: ApprovalReport['result']): string {
  if (result === 'used') return REASONS.ApprovalUsed
  return result === 'expired' ? REASONS.ApprovalExpired : REASONS.ApprovalUnknown
}

function print(report: ApprovalReport): string {
  if (!isInEffect(report)) return ''
  const lines = report.covered.map(({ op, name, type, code }) => `  ${op} ${name} ${type}  ${code}\n`)
  return `${report.id}: ${report.covered.length} changes are approved for one hour\n${lines.join('')}`
}

async function heldSets(stores: Stores): Promise<Map<string, HeldChange[]>> {
  const sets = new Map<string, HeldChange[]>()
  const states = [...(await stores.store.list()).values(), ...((await objectStore(stores)?.list())?.values() ?? [])]
  for (const { held } of states)
    for (const item of held) if (item.set !== undefined) sets.set(item.set, [...(sets.get(item.set) ?? []), item])
  return sets
}

const SHOWN = 10

async function list(io: Io, stores: Stores): Promise<void> {
  const sets = await heldSets(stores)
  if (sets.size === 0) io.stdout.write('nothing is held that an approval would let pass\n')
  for (const [id, held] of sets) {
    const [first] = held
    io.stdout.write(`${id}  ${held.length} changes  ${first?.code ?? ''}: ${first?.why ?? ''}\n`)
    for (const { op, name, type, since } of held.slice(0, SHOWN))
      io.stdout.write(`  ${op} ${name} ${type}, held since ${new Date(since).toISOString()}\n`)
    if (held.length > SHOWN) io.stdout.write(`  and ${held.length - SHOWN} more\n`)
    io.stdout.write(`  to let them pass: ${approveCommand(id)}\n`)
  }
}

/** A new value of the annotation has the manager plan every zone. */
async function askForPass({ client }: Cluster, namespace: string): Promise<void> {
  const metadata = { annotations: { [VERIFY_ANNOTATION]: new Date().toISOString() } }
  const key = `${namespace}/${CONFIGURATION_OBJECT}`
  if ((await client.find(ConfigMap, key)) === undefined) {
    await client
      .create(ConfigMap, { metadata: { name: CONFIGURATION_OBJECT, namespace, ...metadata } })
      .catch((error: unknown) => {
        if (!(error instanceof AlreadyExists)) throw error
      })
  }
  await client.patch(ConfigMap, key, 'merge', { metadata })
}
