/**
 * `seamark status`: the overview of the page on a terminal: clusters, what needs somebody, zones, the last hour. Read-only, with
 * the rights of whoever calls it; the value is that of `GET /api/v1/state`.
 */
import { openStatus, type State } from '@seamark/dashboard'
import { printable } from '@seamark/dns'
import { poll, systemClock } from '@seamark/kube'
import { processGrants, publishOptions, recordsInUse } from '@seamark/operator'
import { Command } from 'commander'
import { EXIT, type Io } from '../../command.ts'
import { addKubeFlags, DEFAULT_NAMESPACE, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'
import { addSettingFlags, readConfig } from '../../flags/setting-flags.ts'
import { addOutputFlag, printTable, printValue } from '../../output-form.ts'
import { VERSION } from '../../version.ts'

interface Flags extends KubeFlags {
  config?: string
  namespace?: string
  watch?: boolean
  output: 'text' | 'wide' | 'json' | 'yaml'
}

const WATCH_MS = 1_000

export function build(io: Io): Command {
  const command = addKubeFlags(
    new Command().description('clusters, what needs somebody, zones and the last hour: the overview of the page'),
  )
    .option('-w, --watch', 'print it again when it changes, until interrupted')
    .option('--config <file>', 'ManagerConfiguration file of the manager [SEAMARK_CONFIG]')
    .option(
      '-n, --namespace <name>',
      `namespace of the manager; else that of the configuration, else ${DEFAULT_NAMESPACE}`,
    )
  addOutputFlag(command, ['text', 'wide', 'json', 'yaml'], 'text')
  addSettingFlags(command, { isListed: false })
  return command.action(async (flags: Flags & Record<string, unknown>) => {
    const { config } = await readConfig(io, flags)
    const cluster = await openCluster(io, flags)
    const namespace = config.namespace || DEFAULT_NAMESPACE
    const { publish, wildcard, fleet, balance, gateway, dns, leaderElection } = config
    const records = recordsInUse(config)
    const capabilities = Object.entries({ publish, wildcard, fleet, balance, records, gateway }).flatMap(
      ([name, part]) => (part.enabled ? [name] : []),
    )
    const grants = processGrants(config.grants, namespace)
    const parts = { fleet: fleet.enabled ? fleet : undefined, balance: balance.enabled }
    try {
      const status = await openStatus(
        {
          cluster,
          namespace,
          version: VERSION,
          mode: config.mode,
          isPaused: config.pause,
          capabilities,
          publish: publish.enabled ? { ...publishOptions(publish, grants), parts } : undefined,
          lease: leaderElection.enabled
            ? `${leaderElection.namespace || namespace}/${leaderElection.lease}`
            : undefined,
          stateFolder: records.enabled || config.dns.listen.length > 0 ? records.stateFolder : undefined,
          zones: dns,
          hasOnlyOwnZones: records.providers.length === 0,
        },
        io.signal,
      )
      try {
        let last = ''
        const show = async (): Promise<State> => {
          const state = await status.read()
          // The version and the age of the data differ each time.
          const shown = JSON.stringify({ ...state, version: '', manager: { ...state.manager, data: '' } })
          if (shown !== last) io.stdout.write(`${last === '' ? '' : '\n'}${print(state, flags.output)}`)
          last = shown
          return state
        }
        if (flags.watch !== true) {
          const { needsYouTotal } = await show()
          io.exit(needsYouTotal > 0 ? EXIT.changes : EXIT.ok)
          return
        }
        const signal = io.outputClosed === undefined ? io.signal : AbortSignal.any([io.signal, io.outputClosed])
        await poll(async () => void (await show()), { clock: systemClock, intervalMs: WATCH_MS, signal })
      } finally {
        await status.close()
      }
    } finally {
      await cluster.close()
    }
  })
}

function print(state: State, output: Flags['output']): string {
  return output === 'json' || output === 'yaml' ? printValue(output, state) : printText(state, output === 'wide')
}

/** `isWide`: every host, and all of the last hour. */
function printText(state: State, isWide: boolean): string {
  const { manager, clusters, hosts, zones, needsYou, needsYouTotal, lastHour } = state
  const { mode, leader, pausedBy, data } = manager
  const age = data.isCurrent ? 'current' : `as of ${data.readAt}: ${data.message ?? ''}`
  const head = [
    mode,
    ...pausedBy.map((by) => `paused by ${by}`),
    ...(leader === undefined ? [] : [`leader ${leader}`]),
    `data ${age}`,
  ]
  const count = (wanted: string): number => hosts.filter((host) => host.state === wanted).length
  const counts = ['as it should be', 'degraded', 'broken'].map((each) => `${count(each)} ${each}`)
  const needs = needsYou.flatMap(({ severity, reason, object, text, since, command }) => {
    const where = object.namespace === undefined ? object.name : `${object.namespace}/${object.name}`
    const from = since === undefined ? '' : `, since ${since}`
    return [`  ${severity}  ${reason}  ${object.kind} ${where}${from}`, `    ${text}`, `    $ ${command}`]
  })
  const more = needsYouTotal - needsYou.length
  const title =
    needsYouTotal === 0
      ? `Nothing needs you${state.changedAt === undefined ? '' : `; the last change was at ${state.changedAt}`}`
      : `Needs you (${needsYouTotal})`
  const events = isWide ? lastHour : lastHour.slice(0, 10)
  const parts = [
    head.join(' · '),
    '',
    printTable(
      ['CLUSTER', 'STATE', 'SHARE', 'HOSTS', 'SINCE', 'WHY'],
      clusters.map(({ name, state: is, answersStill, share, hosts: all, answeredHosts, since = '', text }) => [
        name,
        answersStill ? `${is}, answers still` : is,
        `${Math.round(share * 100)} %`,
        `${answeredHosts}/${all}`,
        since,
        text,
      ]),
    ).trimEnd(),
    '',
    title,
    ...needs,
    ...(more > 0 ? [`  and ${more} more`] : []),
    '',
    `Hosts: ${hosts.length}: ${counts.join(', ')}`,
    ...(isWide
      ? [
          printTable(
            ['HOST', 'STATE', 'REASON', 'ANSWERS'],
            hosts.map(({ name, state: is, reason = '', answers }) => [
              name,
              is,
              reason,
              answers
                .flatMap(({ address, share }) => (share > 0 ? [`${address} ${Math.round(share * 100)} %`] : []))
                .join(', '),
            ]),
          ).trimEnd(),
        ]
      : []),
    '',
    printTable(
      ['ZONE', 'PROVIDER', 'SERVED', 'RECORDS', 'HELD', 'FAULT'],
      zones.map(({ name, provider, isServed, records, held, fault = '' }) => [
        name,
        provider,
        isServed ? 'yes' : 'no',
        String(records),
        String(held),
        fault,
      ]),
    ).trimEnd(),
    '',
    ...(events.length === 0 ? [] : ['Last hour']),
    ...events.map(({ at, reason, object, text }) => `  ${at}  ${reason}  ${object.kind} ${object.name}: ${text}`),
  ]
  // Names and texts come from the cluster: untrusted.
  return `${parts
    .join('\n')
    .split('\n')
    .map((line) => printable(line))
    .join('\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trimEnd()}\n`
}
