/**
 * `seamark contour-plus`: a drop-in for contour-plus 0.16.2. The same flags, variables, messages, lease, port and objects;
 * `--dry-run` and `--shadow` show beforehand that nothing moves (docs/publish.md, "Moving from contour-plus").
 */
import { type Cluster, Service, systemClock } from '@seamark/kube'
import {
  dryRun,
  FIELD_MANAGER,
  type PublishOptions,
  readContourPlusFlags,
  runApp,
  shadow,
  summarize,
} from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io, untilInterrupted } from '../../command.ts'
import { openLog } from '../../command-log.ts'
import {
  addContourPlusFlags,
  type BeyondFlags,
  logLevel,
  typedFlags,
  withBeyond,
} from '../../flags/contour-plus-flags.ts'
import { addKubeFlags, type KubeFlags, openCluster, ownNamespace } from '../../flags/kube-flags.ts'
import { printChanges, printDifference } from './publish-output.ts'

interface Flags extends KubeFlags, BeyondFlags {
  dryRun?: boolean
  shadow?: boolean
  namespace?: string
}

const LEASE = 'contour-plus-leader'

export function build(io: Io): Command {
  const command = new Command().description(
    'DNSEndpoints and Certificates for Contour; takes the flags of contour-plus',
  )
  addContourPlusFlags(command)
  addKubeFlags(command)
    .option('-n, --namespace <name>', 'namespace of the lease; else the one of the pod')
    .option('--dry-run', 'print what would be written and exit: 0 nothing, 2 something')
    .option('--shadow', 'write nothing; compare what contour-plus does with what we would do, until interrupted')
  return command.action(async (flags: Flags) => {
    const result = readContourPlusFlags(typedFlags(command), io.env)
    if (!result.ok) throw new CommandError(result.message, EXIT.usage)
    const { settings } = result
    const options = withBeyond(settings.publish, flags)
    if (flags.dryRun === true) await printDryRun(io, flags, options)
    else if (flags.shadow === true) await runShadow(io, flags, options)
    else await run(io, flags, options, settings.metricsAddress, settings.leaderElection)
  })
}

async function run(io: Io, flags: Flags, publish: PublishOptions, metrics: string, isElected: boolean): Promise<void> {
  const log = openLog(io, logLevel(flags))
  const namespace = await ownNamespace(io, flags.namespace)
  if (namespace === undefined && isElected) {
    throw new CommandError(
      'unable to find leader election namespace: not running in-cluster, please specify --namespace',
      EXIT.usage,
    )
  }
  const cluster = await openCluster(io, flags, { fieldManager: FIELD_MANAGER, log })
  try {
    await runApp(
      {
        cluster,
        publish,
        log,
        mode: 'enforce',
        namespace: namespace ?? 'default',
        eventSource: FIELD_MANAGER,
        reportsInitialFindings: false,
        hasPause: false,
        ...(isElected && namespace !== undefined && { leader: { lease: LEASE, namespace } }),
        ...(metrics !== '0' && metrics !== '' && { metrics }),
      },
      io.signal,
    )
  } finally {
    await cluster.close()
  }
}

async function printDryRun(io: Io, flags: Flags, options: PublishOptions): Promise<void> {
  const cluster = await openCluster(io, flags)
  try {
    const report = await dryRun(cluster, options, io.signal)
    io.stdout.write(printChanges(report))
    const absent = await findAbsentServices(cluster, options, io.signal)
    for (const name of absent)
      io.stdout.write(
        `Service ${name} does not exist: sources that need its address get no DNSEndpoint; check --service-name\n`,
      )
    io.stdout.write(`${summarize(report, options)}\n`)
    io.exit(report.changes.length === 0 && absent.length === 0 ? EXIT.ok : EXIT.changes)
  } finally {
    await cluster.close()
  }
}

async function findAbsentServices(
  { client }: Cluster,
  { services }: PublishOptions,
  signal: AbortSignal,
): Promise<string[]> {
  const names = [...new Set(services.map(({ service }) => service))]
  const found = await Promise.all(names.map(async (name) => client.find(Service, name, { signal })))
  return names.filter((_, index) => found[index] === undefined)
}

async function runShadow(io: Io, flags: Flags, options: PublishOptions): Promise<void> {
  const cluster = await openCluster(io, flags)
  const say = ({ changes, differences, initial }: { changes: number; differences: number; initial: number }): string =>
    `${changes} changes, ${differences} differences (${initial} before the start)\n`
  try {
    const report = await shadow(
      cluster,
      options,
      {
        clock: systemClock,
        onReady: (report) => io.stdout.write(`watching; ${say(report)}`),
        onCompared: (differences, report) => {
          for (const difference of differences) io.stdout.write(printDifference(difference))
          io.stdout.write(say(report))
        },
      },
      untilInterrupted(io),
    )
    io.stdout.write(say(report))
    io.exit(report.differences === 0 ? EXIT.ok : EXIT.changes)
  } finally {
    await cluster.close()
  }
}
