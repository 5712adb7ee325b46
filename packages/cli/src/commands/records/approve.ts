/**
 * `seamark approve ID`: lets a set of held changes pass, once, within an hour. Without an id it lists what is held.
 * The approval is recorded in the guard state; a running manager is requested to plan again.
 */
import { AlreadyExists, type Cluster, ConfigMap } from '@seamark/kube'
import {
  approveCommand,
  approveInStore,
  type ApprovalReport,
  CONFIGURATION_OBJECT,
  heldSets,
  isObjectId,
  isObjectScope,
  REASONS,
  VERIFY_ANNOTATION,
} from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addOutputFlag, printValue } from '../../output-form.ts'
import { addRecordsFlags, type OpenedStores, type RecordsFlags, withStores } from './records-session.ts'

interface Flags extends RecordsFlags {
  output: 'text' | 'json' | 'yaml'
}

export function build(io: Io): Command {
  const command = new Command()
    .description('let a set of held changes pass, once, within an hour; without an id, list what is held')
    .argument('[ids...]', 'ids of held sets, as messages about held changes name them')
  addOutputFlag(command, ['text', 'json', 'yaml'], 'text')
  addRecordsFlags(command)
  return command.action(async (ids: string[], flags: Flags & Record<string, unknown>) =>
    withStores(
      io,
      flags,
      async (stores) => (ids.length === 0 ? list(io, stores, flags.output) : approve(io, ids, stores, flags.output)),
      { needsCluster: ids.some(isObjectId) },
    ),
  )
}

async function approve(
  io: Io,
  ids: readonly string[],
  { held, cluster, namespace }: OpenedStores,
  form: Flags['output'],
): Promise<void> {
  const reports: ApprovalReport[] = []
  for (const id of ids) reports.push(await approveInStore(held, id, Date.now(), { mayRepeat: true }))
  if (form === 'text') for (const report of reports) io.stdout.write(print(report))
  else io.stdout.write(printValue(form, { approvals: reports }))
  const hasRecords = reports.some((report) => isInEffect(report) && !isObjectScope(report.scope))
  if (cluster !== undefined && hasRecords) await askForPass(cluster, namespace)
  const refused = reports.filter((report) => !isInEffect(report))
  if (refused.length === 0) return
  const others = (await heldSets(held)).map(({ id }) => approveCommand(id)).join(', ')
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

const SHOWN = 10

async function list(io: Io, { held }: OpenedStores, form: Flags['output']): Promise<void> {
  const sets = await heldSets(held)
  if (form !== 'text') {
    const shown = sets.map(({ id, changes }) => ({
      id,
      command: approveCommand(id),
      changes: changes.map((change) => ({ ...change, since: new Date(change.since).toISOString() })),
    }))
    io.stdout.write(printValue(form, { held: shown }))
    return
  }
  if (sets.length === 0) io.stdout.write('nothing is held that an approval would let pass\n')
  for (const { id, changes } of sets) {
    const [first] = changes
    io.stdout.write(`${id}  ${changes.length} changes  ${first?.code ?? ''}: ${first?.why ?? ''}\n`)
    for (const { op, name, type, since } of changes.slice(0, SHOWN))
      io.stdout.write(`  ${op} ${name} ${type}, held since ${new Date(since).toISOString()}\n`)
    if (changes.length > SHOWN) io.stdout.write(`  and ${changes.length - SHOWN} more\n`)
    io.stdout.write(`  to let them pass: ${approveCommand(id)}\n`)
  }
}

/** A new value of the annotation has the manager plan every zone. */
export async function askForPass({ client }: Pick<Cluster, 'client'>, namespace: string): Promise<void> {
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
