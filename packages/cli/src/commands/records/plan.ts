/**
 * `seamark plan`: what would be written to DNS, and what would not, and why. Zero writes.
 * Desired records come from the cluster's DNSEndpoints, or from manifests with `-f`. Without providers the authoritative servers are
 * asked instead. A zone that cannot be read makes the exit code 1, whatever else is fine.
 */
import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDnsClient, printable } from '@seamark/dns'
import { messageOf } from '@seamark/kube'
import {
  checkSources,
  compareWithServers,
  type FindServers,
  lookUpServers,
  DNSEndpoint,
  heldSets,
  holdReported,
  openObjectStore,
  DNSLoadBalancer,
  nameAmong,
  parseServer,
  type Plan,
  type Planned,
  printPlanJson,
  massLimits,
  servedBy,
  type ServerComparison,
  sourceOf,
  desiredWithinLimits,
  type TenantRules,
  type DesiredRecords,
} from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { parseYaml, readText } from '../../manifest-files.ts'
import { addOutputFlag } from '../../output-form.ts'
import {
  addRecordsFlags,
  PLAN_FORMS,
  type PlanForm,
  printPlans,
  type RecordsFlags,
  type Session,
  withSession,
} from './records-session.ts'

interface Flags extends RecordsFlags {
  filename?: string[]
  output: PlanForm
  out?: string
  detailedExitcode?: boolean
  approve?: string[]
  server?: string
}

/** As the manager, which looks the owners of DNSEndpoints up in its cache. */
async function withLoadBalancers(
  { rules, cluster }: Pick<Session, 'rules' | 'cluster'>,
  signal: AbortSignal,
): Promise<TenantRules> {
  if (rules.adoptedByLoadBalancers === undefined || cluster === undefined) return rules
  const { items } = await cluster.client.list(DNSLoadBalancer, { signal })
  return { ...rules, nameOfLoadBalancer: nameAmong(items, rules.findNameFault) }
}

type Manifest = Parameters<typeof sourceOf>[0]

export function build(io: Io): Command {
  const command = new Command()
    .description('what would be written to DNS, and what not, and why; writes nothing')
    .option('-f, --filename <path...>', 'DNSEndpoint manifests instead of the cluster: files or folders')
    .option('--out <file>', 'also write the plan to a file, for seamark apply')
    .option('--detailed-exitcode', 'exit with 2 when there are changes')
    .option('--approve <id...>', 'plan as if these sets of held changes were approved')
    .option('--server <address[:port]>', 'authoritative server to ask when there are no providers')
  addOutputFlag(command, PLAN_FORMS, 'text')
  addRecordsFlags(command)
  return command.action(async (flags: Flags & Record<string, unknown>) => {
    await withSession(io, flags, async (session) => {
      const { objects, isComplete } = await readDesired(io, flags, session)
      const rules = await withLoadBalancers(session, io.signal)
      const desired = desiredWithinLimits(objects, session.config.defaultTtl, rules)
      if (!session.hasProviders) {
        await askServers(io, flags, session, desired)
        return
      }
      const { cluster } = session
      const present = new Set(objects.map((object) => sourceOf(object).uid))
      const planned = await session.engine.plan(
        {
          ...desired,
          // Manifests in a folder are not all sources: a source that is not among them is not deleted.
          sources: async (owned) =>
            cluster === undefined || !isComplete || objects.length === 0
              ? { present, gone: new Set() }
              : {
                  requesting: new Set(desired.desired.map(({ source }) => source.uid)),
                  ...(await checkSources(
                    cluster.client,
                    {
                      owned,
                      present,
                      isServed: servedBy(session.config),
                      now: Date.now(),
                      massLimits: massLimits(session.manager.safety),
                    },
                    io.signal,
                  )),
                },
          ...(flags.approve !== undefined && { approved: new Set(flags.approve) }),
        },
        'all',
        io.signal,
      )
      const shown = { ...planned, plans: await withReports(planned.plans, objects, session, desired, io.signal) }
      await report(io, flags, shown, planned.plans)
      await reportHeldObjects(io, session)
      warnAboutMissingFacts(io, planned, { isComplete: cluster !== undefined && isComplete, mode: session.mode })
    })
  })
}

async function readDesired(
  io: Io,
  flags: Flags,
  { cluster, config }: Session,
): Promise<{ objects: Manifest[]; isComplete: boolean }> {
  if (flags.filename !== undefined) {
    const texts = await Promise.all(
      (await listFiles(flags.filename)).map(async (file) => ({ file, text: await readText(file) })),
    )
    return { objects: texts.flatMap(({ file, text }) => parseManifests(file, text)), isComplete: false }
  }
  if (cluster === undefined)
    throw new CommandError('name manifests with -f, or a cluster with --kubeconfig', EXIT.usage)
  const { namespace } = config.dnsEndpoints
  const list = await cluster.client.list(DNSEndpoint, {
    signal: io.signal,
    ...(namespace !== '' && { namespace }),
  })
  return { objects: list.items.filter(servedBy(config)), isComplete: true }
}

async function listFiles(paths: readonly string[]): Promise<string[]> {
  const files: string[] = []
  for (const path of paths) {
    const info = await stat(path).catch((cause: unknown) => {
      throw new CommandError(`cannot read ${path}: ${messageOf(cause)}`, EXIT.error, { cause })
    })
    if (!info.isDirectory()) files.push(path)
    else
      for (const name of (await readdir(path)).toSorted())
        if (/\.(ya?ml|json)$/.test(name)) files.push(join(path, name))
  }
  return files
}

function parseManifests(file: string, text: string): Manifest[] {
  return parseYaml(file, text).flatMap((value) => {
    const object = value as (Partial<Manifest> & { kind?: string; items?: unknown[] }) | null
    const all = object?.kind?.endsWith('List') === true ? (object.items ?? []) : [object]
    return all.filter(
      (item): item is Manifest =>
        (item as { kind?: string } | null)?.kind === 'DNSEndpoint' && (item as Manifest).metadata !== undefined,
    )
  })
}

/** What the manager reported cannot be computed here: a clock that is wrong, a change that the DNS service refuses. */
async function withReports(
  plans: readonly Plan[],
  objects: readonly Manifest[],
  { cluster }: Pick<Session, 'cluster'>,
  { desired }: DesiredRecords,
  signal: AbortSignal,
): Promise<readonly Plan[]> {
  if (cluster === undefined) return plans
  const byUid = new Map(objects.map((object) => [sourceOf(object).uid, object as DNSEndpoint]))
  const byName = new Map<string, DNSEndpoint[]>()
  for (const { set, source } of desired) {
    const endpoint = byUid.get(source.uid)
    if (endpoint !== undefined) byName.set(set.name, [...(byName.get(set.name) ?? []), endpoint])
  }
  const requesting = (name: string): readonly DNSEndpoint[] => byName.get(name) ?? []
  return holdReported(plans, requesting, cluster.client, signal)
}

/** `made`: for seamark apply, which tries also what the manager has failed to do. */
async function report(
  io: Io,
  flags: Flags,
  { plans, unread, withoutZone }: Planned,
  made: readonly Plan[],
): Promise<void> {
  if (flags.out !== undefined) await writeFile(flags.out, printPlanJson(made))
  io.stdout.write(printPlans(plans, flags.output))
  for (const { name, type, code, message } of withoutZone)
    io.stderr.write(`held: ${name} ${type} ${code}: ${message}\n`)
  for (const { provider, zone, code, why } of unread) io.stderr.write(`unread: ${zone} (${provider}) ${code}: ${why}\n`)
  if (unread.length > 0) io.exit(EXIT.error)
  else if (flags.detailedExitcode === true && hasChanges(plans)) io.exit(EXIT.changes)
}

/** Changes of objects that a guard of the manager holds: no plan of records contains them. One line for each set. */
async function reportHeldObjects(io: Io, { cluster, namespace }: Session): Promise<void> {
  if (cluster === undefined) return
  try {
    for (const { changes } of await heldSets(openObjectStore(cluster.client, namespace))) {
      const [first] = changes
      if (first === undefined) continue
      const more = changes.length > 1 ? ` and ${changes.length - 1} more` : ''
      // Names come from the cluster: untrusted text.
      io.stderr.write(
        `${printable(`held: ${first.op} ${first.type} ${first.name}${more} ${first.code}: ${first.why}`)}\n`,
      )
    }
  } catch (error) {
    io.stderr.write(`note: held changes of objects cannot be read: ${messageOf(error)}\n`)
  }
}

/** A plan with fewer facts than the manager's may decide otherwise. */
function warnAboutMissingFacts(
  io: Io,
  { withoutState }: Planned,
  { isComplete, mode }: { isComplete: boolean; mode: 'enforce' | 'observe' },
): void {
  if (withoutState.length > 0)
    io.stderr.write(
      `note: no guard state here for ${withoutState.map(({ provider, zone }) => `${zone} (${provider})`).join(', ')}; limits are judged from the zone alone, and the manager may hold more\n`,
    )
  if (!isComplete)
    io.stderr.write(
      'note: the sources of the cluster were not read; nothing is deleted that the manifests do not name\n',
    )
  if (mode === 'observe') io.stderr.write('note: the manager is in observe mode and writes none of this\n')
}

function hasChanges(plans: readonly Plan[]): boolean {
  return plans.some((plan) => plan.changes.length > 0)
}

/** Without providers: compares each desired RRset with the answers of the authoritative servers. */
async function askServers(io: Io, flags: Flags, { owner }: Session, records: DesiredRecords): Promise<void> {
  const client = createDnsClient()
  try {
    const given = flags.server === undefined ? undefined : parseServer(flags.server)
    const findServers: FindServers = async (name) =>
      given === undefined ? lookUpServers(name) : [{ name: flags.server ?? '', addresses: [given] }]
    const found = await compareWithServers(records.desired, owner.id, findServers, client, io.signal)
    for (const { desired, answer, present, why } of found) {
      const values = present === undefined ? '' : ` has ${present.values.join(', ')}`
      io.stdout.write(
        `${answer.padEnd(8)} ${desired.set.name} ${desired.set.type}${values}${why === undefined ? '' : ` (${why})`}\n`,
      )
    }
    for (const { name, type, code, message } of records.unusable)
      io.stderr.write(`held: ${name} ${type} ${code}: ${message}\n`)
    io.exit(exitFor(found, flags.detailedExitcode === true))
  } finally {
    await client.close()
  }
}

function exitFor(found: readonly ServerComparison[], isDetailed: boolean): 0 | 1 | 2 {
  if (found.some(({ answer }) => answer === 'unread')) return EXIT.error
  return isDetailed && found.some(({ answer }) => answer !== 'equal') ? EXIT.changes : EXIT.ok
}
