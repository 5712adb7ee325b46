/** `seamark run`: the unified manager, with the capabilities its configuration turns on. */
import { createLogger, systemClock } from '@seamark/kube'
import { FIELD_MANAGER, publishOptions, runApp, wildcardOptions } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../command.ts'
import { watchConfig } from '../config-watch.ts'
import { addKubeFlags, type KubeFlags, openCluster, ownNamespace } from '../kube-flags.ts'
import { addSettingFlags, configPath, parseConfig, readConfig } from '../setting-flags.ts'

interface Flags extends KubeFlags {
  config?: string
  namespace?: string
}

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('run the manager'))
    .option('--config <file>', 'ManagerConfiguration file [SEAMARK_CONFIG]')
    .option('-n, --namespace <name>', 'namespace of the manager; else the one of the pod')
  addSettingFlags(command)
  return command.action(async (flags: Flags & Record<string, unknown>) => {
    const { config } = await readConfig(io, flags)
    const namespace = await ownNamespace(io, flags.namespace)
    if (namespace === undefined)
      throw new CommandError(
        'the namespace of the manager is unknown outside a pod; name it with --namespace',
        EXIT.usage,
      )
    const log = createLogger({ level: config.logLevel })
    const cluster = await openCluster(io, flags, { fieldManager: FIELD_MANAGER, log })
    const path = configPath(io, flags)
    const stopped = new AbortController()
    const watching =
      path === undefined
        ? undefined
        : watchConfig(
            { path, running: config, parse: (text) => parseConfig(io, flags, text), log, clock: systemClock },
            AbortSignal.any([io.signal, stopped.signal]),
          )
    const { leaderElection, metrics, probes, publish, wildcard, dns, mode } = config
    try {
      await runApp(
        {
          cluster,
          log,
          mode,
          namespace,
          isPaused: config.pause,
          ownsConfigurationObject: true,
          denyAddresses: config.denyAddresses,
          allowLoopback: config.allowLoopback,
          ...(config.balance.enabled && { balance: { config: config.balance } }),
          ...(config.fleet.enabled && { fleet: config.fleet }),
          ...(publish.enabled && { publish: publishOptions(publish, config.grants) }),
          ...(config.records.enabled && { records: { config: config.records, env: io.env, grants: config.grants } }),
          ...(wildcard.enabled && { wildcard: wildcardOptions(wildcard) }),
          ...(isOn(config.admission.address) && {
            admission: { config: config.admission, grants: config.grants },
          }),
          ...(dns.listen.length > 0 && { dns: { config: dns, env: io.env } }),
          ...(leaderElection.enabled && {
            leader: { lease: leaderElection.lease, namespace: leaderElection.namespace || namespace },
          }),
          ...(isOn(metrics.address) && { metrics: metrics.address }),
          ...(isOn(probes.address) && { probes: probes.address }),
          onReady: ({ probes: at, dns: dnsAddresses = [] }) => {
            for (const address of dnsAddresses) io.stdout.write(`dns ${address}\n`)
            io.stdout.write(`ready ${at ?? ''}\n`)
          },
        },
        io.signal,
      )
    } finally {
      stopped.abort()
      await watching
      await cluster.close()
    }
  })
}

function isOn(address: string): boolean {
  return address !== '' && address !== '0'
}
