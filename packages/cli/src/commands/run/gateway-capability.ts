/**
 * The capability `gateway` of `seamark run`: the data plane in the process of the manager, with connections, caches and a Lease
 * of its own.
 *
 * Guarantees: every replica serves; the holder of the Lease writes statuses, unless the manager observes or is paused. The
 * data plane continues to serve when a Lease is lost or the API server is gone.
 */
import {
  GATEWAY_FIELD_MANAGER,
  BUILD_DEFAULTS,
  type BuildSettings,
  type GatewayOptions,
  keepXdsCertificates,
  setUpGateway,
} from '@seamark/gateway'
import { type Cluster, type Logger, type Manager, manager } from '@seamark/kube'
import {
  createKillSwitch,
  gateWrites,
  type GatewayConfig,
  type LeaseTimes,
  watchSwitches,
  WriteRefused,
} from '@seamark/operator'
import { gatewayRules } from '../../gateway-rules.ts'
import { announcing, envoyFlagsOf, envoyOptions, SETTING_NAMES } from '../gateway/envoy-flags.ts'
import { parseAddresses, parseListen, parsePorts } from '../gateway/gateway-flags.ts'

type Grants = BuildSettings['grants']

export interface GatewayCapability {
  readonly config: GatewayConfig
  /** The names that each namespace may use. */
  readonly grants: Grants
  /** Connections of its own: caches of other capabilities have other filters. */
  readonly cluster: Cluster
  /** Served by the manager of the other capabilities. @default its own, which nobody reads */
  readonly sharedMetrics?: Manager['metrics']
  readonly mode: 'observe' | 'enforce'
  readonly isPaused: boolean
  /** Calls `replace` when the configuration changed. Returns the unsubscribe function. */
  readonly onChange: (replace: (now: Pick<GatewayCapability, 'config' | 'grants' | 'isPaused'>) => void) => () => void
  readonly allowLoopback: boolean
  readonly namespace: string
  readonly leaseTimes: LeaseTimes
  readonly log: Logger
  /** To find the program envoy. */
  readonly env: NodeJS.ProcessEnv
  readonly stdout: Pick<NodeJS.WritableStream, 'write'>
  /** `HTTP-ADDRESS HTTPS-ADDRESS`, when the ports are open. */
  readonly onReady: (addresses: string) => void
  readonly onAnswers?: GatewayOptions['onAnswers']
}

const GRACE_MS = 4_500

export async function runGateway(options: GatewayCapability, signal: AbortSignal): Promise<void> {
  const { config, cluster, namespace, log, mode, isPaused } = options
  const [http, https] = [
    parseListen('gateway.httpListen', config.httpListen),
    parseListen('gateway.httpsListen', config.httpsListen),
  ]
  const ports = parsePorts('gateway.listenerAddresses', config.listenerAddresses)
  // Before anything runs: a setting that cannot be used ends the process.
  const envoy = envoyOptions(
    options,
    envoyFlagsOf(config),
    log,
    [namespace, config.lease, config.httpListen],
    SETTING_NAMES,
  )
  const killSwitch = createKillSwitch(
    'unread',
    ...(mode === 'observe' ? ['observe'] : []),
    ...(isPaused ? ['configuration'] : []),
  )
  const { xdsSecret: secret, xdsClientSecret: clientSecret, xdsDnsNames: dnsNames } = config
  const secrets = `/api/v1/namespaces/${namespace}/secrets`
  // As those of the webhooks, certificates are kept during a pause.
  const kept = new Set(
    secret === '' || mode === 'observe' ? [] : [secrets, `${secrets}/${secret}`, `${secrets}/${clientSecret}`],
  )
  gateWrites(
    cluster,
    () => {
      if (killSwitch.isPaused) throw new WriteRefused('PAUSED', `nothing is written: ${killSwitch.by.join(', ')}`)
    },
    (path) => kept.has(path),
  )
  const mgr = await manager({
    cluster,
    fieldManager: GATEWAY_FIELD_MANAGER,
    log,
    grace: GRACE_MS,
    ...(options.sharedMetrics !== undefined && { sharedMetrics: options.sharedMetrics }),
    leader: { lease: config.lease, namespace, ...options.leaseTimes },
  })
  const certificates =
    secret === '' || envoy?.port === undefined
      ? undefined
      : await keepXdsCertificates(mgr, { namespace, secret, clientSecret, dnsNames })
  const port =
    envoy?.port === undefined || certificates === undefined
      ? envoy?.port
      : { ...envoy.port, tls: certificates.files, ready: certificates.ready }
  setUpGateway(mgr, {
    settings: settingsOf(config, options.grants, options.allowLoopback),
    onSettings: (replace) =>
      options.onChange((now) => replace(settingsOf(now.config, now.grants, options.allowLoopback))),
    http,
    https,
    ports,
    portOffset: config.listenerPortOffset,
    ...(envoy !== undefined && {
      envoy: announcing(options.stdout, { ...envoy, ...(port !== undefined && { port }) }),
    }),
    statusAddresses: parseAddresses(config.statusAddresses.join(',')),
    ...(config.service !== '' && { service: config.service }),
    pause: killSwitch,
    allowLoopback: options.allowLoopback,
    ...(options.onAnswers !== undefined && { onAnswers: options.onAnswers }),
    onReady: (addresses) => {
      const shown = [addresses.http, addresses.https].flatMap((each) => {
        if (each === undefined) return []
        return [each.host.includes(':') ? `[${each.host}]:${each.port}` : `${each.host}:${each.port}`]
      })
      options.onReady(shown.join(' '))
    },
  })
  // After the caches of the gateway were configured.
  watchSwitches(mgr.cluster, namespace, killSwitch)
  const unsubscribe = options.onChange((now) => killSwitch.set('configuration', now.isPaused))
  await mgr.run(signal).finally(unsubscribe)
}

function settingsOf(config: GatewayConfig, grants: Grants, allowsLoopback: boolean): BuildSettings {
  return { ...BUILD_DEFAULTS, mode: config.mode, allowsLoopback, ...gatewayRules(config, grants) }
}
