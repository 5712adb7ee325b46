/**
 * `seamark gateway`: the data plane of a cluster. Ingress, HTTPProxy and Gateway API in; requests served by the built-in
 * proxy or by Envoy, statuses and addresses out. Every replica serves; the holder of the Lease writes statuses.
 */
import { manager } from '@seamark/kube'
import { GATEWAY_FIELD_MANAGER, setUpGateway } from '@seamark/gateway'
import { Command } from 'commander'
import type { Io } from '../../command.ts'
import { openLog } from '../../command-log.ts'
import { addEnvoyFlags, announcing, type EnvoyFlags, envoyOptions } from './envoy-flags.ts'
import {
  addBuildFlags,
  addPortFlags,
  type BuildFlags,
  buildSettings,
  leaseName,
  parseAddresses,
  parseListen,
  type PortFlags,
  portOptions,
} from './gateway-flags.ts'
import { buildBootstrap } from './bootstrap.ts'
import { buildTranslate } from './translate.ts'
import { addKubeFlags, type KubeFlags, openCluster, ownNamespace } from '../../flags/kube-flags.ts'

interface Flags extends KubeFlags, BuildFlags, EnvoyFlags, PortFlags {
  httpListen?: string
  httpsListen?: string
  envoyServiceHttpAddress: string
  envoyServiceHttpPort: string
  envoyServiceHttpsAddress: string
  envoyServiceHttpsPort: string
  envoyServiceName: string
  envoyServiceNamespace?: string
  ingressStatusAddress?: string
  leaderElectionResourceName?: string
  leaderElectionResourceNamespace?: string
  disableLeaderElection?: boolean
  metrics?: string
  probes?: string
  namespace?: string
  debug?: boolean
}

/** A stop has to complete within 5 s. */
const GRACE_MS = 4_500

export function build(io: Io): Command {
  const command = new Command().description('serve Ingress, HTTPProxy and Gateway API with the built-in proxy or Envoy')
  addBuildFlags(command.optionsGroup('What is served:'))
  addPortFlags(
    command
      .optionsGroup('Where it listens:')
      .option('--http-listen <host:port>', 'address for HTTP; else --envoy-service-http-address and -port')
      .option('--https-listen <host:port>', 'address for HTTPS; else --envoy-service-https-address and -port')
      .option('--envoy-service-http-address <address>', 'address for HTTP', '::')
      .option('--envoy-service-http-port <port>', 'port for HTTP', '8080')
      .option('--envoy-service-https-address <address>', 'address for HTTPS', '::')
      .option('--envoy-service-https-port <port>', 'port for HTTPS', '8443'),
  )
  addEnvoyFlags(command.optionsGroup('Data plane:'))
  command
    .optionsGroup('Statuses:')
    .option(
      '--ingress-status-address <addresses>',
      'addresses for statuses, comma-separated; else those of the Service',
    )
    .option('--envoy-service-name <name>', 'Service of the data plane, whose addresses go to statuses', 'envoy')
    .option('--envoy-service-namespace <name>', 'its namespace; else that of the manager')
    .option('--leader-election-resource-name <name>', 'Lease of the status writer')
    .option('--leader-election-resource-namespace <name>', 'its namespace; else that of the manager')
    .option('--disable-leader-election', 'write statuses without a Lease; for a single replica')
  addKubeFlags(command.optionsGroup('Process:'))
    .option('-n, --namespace <name>', 'namespace of the manager; else the one of the pod')
    .option('--metrics <host:port>', 'address of the metrics; else none')
    .option('--probes <host:port>', 'address of /healthz and /readyz; else none')
    .option('--debug', 'log more')
  command.addCommand(buildTranslate(io))
  command.addCommand(buildBootstrap(io))
  return command.action(async (flags: Flags) => {
    const settings = buildSettings(flags)
    const http = parseListen(
      '--http-listen',
      flags.httpListen ?? join(flags.envoyServiceHttpAddress, flags.envoyServiceHttpPort),
    )
    const https = parseListen(
      '--https-listen',
      flags.httpsListen ?? join(flags.envoyServiceHttpsAddress, flags.envoyServiceHttpsPort),
    )
    const ports = portOptions(flags)
    const namespace = (await ownNamespace(io, flags.namespace)) ?? 'default'
    const isElected = flags.disableLeaderElection !== true
    const lease = {
      // Several installations in one namespace have a Lease each.
      lease: flags.leaderElectionResourceName ?? leaseName(flags),
      namespace: flags.leaderElectionResourceNamespace ?? namespace,
    }
    const log = openLog(io, flags.debug === true ? 'debug' : 'info')
    const envoy = envoyOptions(io, flags, log, [lease.namespace, lease.lease, join(http.host, http.port)])
    const cluster = await openCluster(io, flags, { fieldManager: GATEWAY_FIELD_MANAGER, log })
    try {
      const mgr = await manager({
        cluster,
        fieldManager: GATEWAY_FIELD_MANAGER,
        log,
        grace: GRACE_MS,
        ...(isElected && { leader: lease }),
        ...(flags.metrics !== undefined && { metrics: flags.metrics }),
        ...(flags.probes !== undefined && { probes: flags.probes }),
      })
      setUpGateway(mgr, {
        settings,
        http,
        https,
        ...ports,
        ...(envoy !== undefined && { envoy: announcing(io.stdout, envoy) }),
        statusAddresses: parseAddresses(flags.ingressStatusAddress),
        service: `${flags.envoyServiceNamespace ?? namespace}/${flags.envoyServiceName}`,
        onReady: (addresses) => {
          const shown = [addresses.http, addresses.https].flatMap((each) =>
            each === undefined ? [] : [join(each.host, each.port)],
          )
          io.stdout.write(`ready ${shown.join(' ')}\n`)
        },
      })
      await mgr.run(io.signal)
    } finally {
      await cluster.close()
    }
  })
}

function join(host: string, port: string | number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
