/** `seamark run`: the unified manager, with the capabilities its configuration turns on. */
import type { DashboardOptions } from '@seamark/dashboard'
import { GATEWAY_FIELD_MANAGER } from '@seamark/gateway'
import { type Cluster, type Logger, type MassLimits, systemClock } from '@seamark/kube'
import { createMetrics } from '@seamark/kube/metrics'
import {
  type AppOptions,
  FIELD_MANAGER,
  leaseTimes,
  type ManagerConfiguration,
  massLimits,
  processGrants,
  publishOptions,
  runApp,
  wildcardOptions,
} from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { openLog } from '../../command-log.ts'
import { ConfigChanges, watchConfig } from './config-watch.ts'
import { runGateway } from './gateway-capability.ts'
import { pageOf } from './page.ts'
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
    const level = { current: config.logLevel }
    const log = openLog(io, level)
    let limits = massLimits(config.safety)
    // Read at each use: they may change while the connections are open.
    const removalLimits: MassLimits = {
      get count() {
        return limits.count
      },
      get share() {
        return limits.share
      },
    }
    const path = configPath(io, flags)
    const stopped = new AbortController()
    const changes = new ConfigChanges()
    const listeners = new Set<(config: ManagerConfiguration) => void>()
    /** The connection of the manager, as long as it runs. */
    let connected: Cluster | undefined
    const watching =
      path === undefined
        ? undefined
        : watchConfig(
            {
              path,
              running: config,
              parse: (text) => parseConfig(io, flags, text),
              notify: (notice) => changes.notify(notice),
              replace(now, settings) {
                level.current = now.logLevel
                limits = massLimits(now.safety)
                for (const listener of listeners) listener(now)
                const ofManager = settings.filter(
                  (setting) => setting !== 'logLevel' && !setting.startsWith('gateway.'),
                )
                if (connected !== undefined && ofManager.length > 0)
                  changes.replace(appOptions(io, { cluster: connected, config: now, namespace, log }), ofManager)
              },
              log,
              clock: systemClock,
            },
            AbortSignal.any([io.signal, stopped.signal]),
          )
    const ended = new AbortController()
    let answers: () => ReadonlyMap<string, number> | undefined = () => undefined
    const signal = AbortSignal.any([io.signal, ended.signal])
    const start = async (running: AbortSignal, more: Pick<AppOptions, 'sharedMetrics' | 'readiness'> = {}) => {
      const cluster = await openCluster(io, flags, { fieldManager: FIELD_MANAGER, log, removalLimits })
      try {
        connected = cluster
        const traffic = config.gateway.enabled ? () => new Map([['', answers()]]) : undefined
        const options = appOptions(io, { cluster, config, namespace, log, traffic })
        await runApp({ ...options, ...more, changes }, running)
      } finally {
        await cluster.close()
      }
    }
    try {
      if (config.gateway.enabled) {
        const gateway = await openCluster(io, flags, { fieldManager: GATEWAY_FIELD_MANAGER, log, removalLimits })
        try {
          const sharedMetrics = createMetrics()
          // A Pod that takes no connections yet must not replace one that does.
          let isOpen = false
          const readiness = { gateway: () => (isOpen ? undefined : 'its ports are not open yet') }
          // The first part that fails ends the other one.
          const parts = [
            start(signal, { sharedMetrics, readiness }),
            runGateway(
              {
                config: config.gateway,
                grants: processGrants(config.grants, namespace),
                cluster: gateway,
                sharedMetrics,
                mode: config.mode,
                isPaused: config.pause,
                onChange(replace) {
                  const listener = (now: ManagerConfiguration): void =>
                    replace({
                      config: now.gateway,
                      grants: processGrants(now.grants, namespace),
                      isPaused: now.pause,
                    })
                  listeners.add(listener)
                  return () => listeners.delete(listener)
                },
                allowLoopback: config.allowLoopback,
                namespace,
                leaseTimes: leaseTimes(config.leaderElection),
                log,
                env: io.env,
                stdout: io.stdout,
                onReady(addresses) {
                  isOpen = true
                  io.stdout.write(`gateway ${addresses}\n`)
                },
                onAnswers: (read) => (answers = read),
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

interface ManagerFacts {
  readonly cluster: Cluster
  readonly config: ManagerConfiguration
  readonly namespace: string
  readonly log: Logger
  /** Of gateways in this process. */
  readonly traffic?: DashboardOptions['traffic']
}

export function appOptions(io: Io, { cluster, config, namespace, log, traffic }: ManagerFacts): AppOptions {
  const { leaderElection, metrics, probes, publish, wildcard, dns, mode } = config
  const page = pageOf(io, { config, namespace, log, traffic })
  return {
    cluster,
    log,
    mode,
    grants: config.grants,
    namespace,
    isPaused: config.pause,
    ownsConfigurationObject: true,
    installsCrds: config.installCRDs,
    safety: config.safety,
    denyAddresses: config.denyAddresses,
    allowLoopback: config.allowLoopback,
    ...(config.balance.enabled && { balance: { config: config.balance } }),
    ...(config.fleet.enabled && { fleet: config.fleet }),
    ...(publish.enabled && { publish: publishOptions(publish) }),
    records: { config: config.records, env: io.env },
    ...(wildcard.enabled && { wildcard: wildcardOptions(wildcard) }),
    ...(isOn(config.admission.address) && {
      admission: { config: config.admission },
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
    ...(page !== undefined && { page }),
    onReady: ({ probes: at, dns: dnsAddresses = [], page: url }) => {
      if (url !== undefined) io.stdout.write(`page ${url}\n`)
      for (const address of dnsAddresses) io.stdout.write(`dns ${address}\n`)
      io.stdout.write(`ready ${at ?? ''}\n`)
    },
  }
}

function isOn(address: string): boolean {
  return address !== '' && address !== '0'
}
