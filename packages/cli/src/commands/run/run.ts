/** `seamark run`: the unified manager, with the capabilities its configuration turns on. */
import { GATEWAY_FIELD_MANAGER } from '@seamark/gateway'
import { type Cluster, createLogger, type Logger, systemClock } from '@seamark/kube'
import {
  FIELD_MANAGER,
  leaseTimes,
  type ManagerConfiguration,
  publishOptions,
  runApp,
  wildcardOptions,
} from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { watchConfig } from './config-watch.ts'
import { runGateway } from './gateway-capability.ts'
import { addKubeFlags, type KubeFlags, openCluster, ownNamespace } from '../../flags/kube-flags.ts'
import { addSettingFlags, configPath, parseConfig, readConfig } from '../../flags/setting-flags.ts'

interface Flags extends KubeFlags {
  config?: string
  namespace?: string
}

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('run the manager'))
    .option('--config <file>', 'ManagerConfiguration file [SEAMARK_CONFIG]')
    .option('-n, --namespace <name>', 'namespace of the manager; else that of the configuration, else that of the pod')
  addSettingFlags(command)
  return command.action(async (flags: Flags & Record<string, unknown>) => {
    const { config } = await readConfig(io, flags)
    const namespace = await ownNamespace(io, config.namespace)
    if (namespace === undefined)
      throw new CommandError(
        'the namespace of the manager is unknown outside a pod; name it with --namespace, or as `namespace` in the configuration',
        EXIT.usage,
      )
    const log = createLogger({ level: config.logLevel })
    const path = configPath(io, flags)
    const stopped = new AbortController()
    const watching =
      path === undefined
        ? undefined
        : watchConfig(
            { path, running: config, parse: (text) => parseConfig(io, flags, text), log, clock: systemClock },
            AbortSignal.any([io.signal, stopped.signal]),
          )
    const ended = new AbortController()
    const signal = AbortSignal.any([io.signal, ended.signal])
    const start = async (running: AbortSignal) => {
      const cluster = await openCluster(io, flags, { fieldManager: FIELD_MANAGER, log })
      try {
        await runManager(io, { cluster, config, namespace, log }, running)
      } finally {
        await cluster.close()
      }
    }
    try {
      if (config.gateway.enabled) {
        const gateway = await openCluster(io, flags, { fieldManager: GATEWAY_FIELD_MANAGER, log })
        try {
          // The first part that fails ends the other one.
          const parts = [
            start(signal),
            runGateway(
              {
                config: config.gateway,
                grants: config.grants,
                cluster: gateway,
                mode: config.mode,
                isPaused: config.pause,
                allowLoopback: config.allowLoopback,
                namespace,
                leaseTimes: leaseTimes(config.leaderElection),
                log,
                env: io.env,
                stdout: io.stdout,
                onReady: (addresses) => io.stdout.write(`gateway ${addresses}\n`),
              },
              signal,
            ),
          ]
          const results = await Promise.allSettled(parts.map(async (part) => part.finally(() => ended.abort())))
          const failed = results.find((each) => each.status === 'rejected')
          if (failed !== undefined) throw failed.reason
        } finally {
          await gateway.close()
        }
      } else await start(signal)
    } finally {
      stopped.abort()
      await watching
    }
  })
}

async function runManager(
  io: Io,
  {
    cluster,
    config,
    namespace,
    log,
  }: { cluster: Cluster; config: ManagerConfiguration; namespace: string; log: Logger },
  signal: AbortSignal,
): Promise<void> {
  const { leaderElection, metrics, probes, publish, wildcard, dns, mode } = config
  await runApp(
    {
      cluster,
      log,
      mode,
      namespace,
      isPaused: config.pause,
      ownsConfigurationObject: true,
      installsCrds: config.installCRDs,
      safety: config.safety,
      denyAddresses: config.denyAddresses,
      allowLoopback: config.allowLoopback,
      ...(config.balance.enabled && { balance: { config: config.balance } }),
      ...(config.fleet.enabled && { fleet: config.fleet }),
      ...(publish.enabled && { publish: publishOptions(publish, config.grants) }),
      records: { config: config.records, env: io.env, grants: config.grants },
      ...(wildcard.enabled && { wildcard: wildcardOptions(wildcard) }),
      ...(isOn(config.admission.address) && {
        admission: { config: config.admission, grants: config.grants },
      }),
      ...(dns.listen.length > 0 && { dns: { config: dns, env: io.env } }),
      ...(leaderElection.enabled && {
        leader: {
          lease: leaderElection.lease,
          namespace: leaderElection.namespace || namespace,
          ...leaseTimes(leaderElection),
        },
      }),
      ...(isOn(metrics.address) && { metrics: metrics.address }),
      ...(isOn(probes.address) && { probes: probes.address }),
      onReady: ({ probes: at, dns: dnsAddresses = [] }) => {
        for (const address of dnsAddresses) io.stdout.write(`dns ${address}\n`)
        io.stdout.write(`ready ${at ?? ''}\n`)
      },
    },
    signal,
  )
}

function isOn(address: string): boolean {
  return address !== '' && address !== '0'
}
