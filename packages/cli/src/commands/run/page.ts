/** The page of `seamark run`: what the manager shows of itself. */
import { type DashboardOptions, dashboardPart } from '@seamark/dashboard'
import { type Logger } from '@seamark/kube'
import {
  type AppOptions,
  type ManagerConfiguration,
  PlanReader,
  processGrants,
  recordsInUse,
  servesPage,
} from '@seamark/operator'
import { requestRules, traceInCluster } from '../explain/request-hop.ts'
import { VERSION } from '../../version.ts'
import type { Io } from '../../command.ts'

/** Undefined: `dashboard.address` serves none. */
export function pageOf(
  io: Io,
  {
    config,
    namespace,
    log,
    traffic,
  }: {
    readonly config: ManagerConfiguration
    readonly namespace: string
    readonly log: Logger
    readonly traffic: DashboardOptions['traffic']
  },
): AppOptions['page'] {
  if (!servesPage(config.dashboard.address)) return undefined
  const { publish, wildcard, fleet, balance, records, gateway, dns } = config
  const capabilities = Object.entries({ publish, wildcard, fleet, balance, records, gateway }).flatMap(
    ([name, part]) => (part.enabled ? [name] : []),
  )
  return async (source) => {
    const part = dashboardPart({
      config: config.dashboard,
      version: VERSION,
      log,
      ...(traffic !== undefined && { traffic }),
      capabilities: [...capabilities, ...(dns.listen.length > 0 ? ['dns'] : [])],
      dnsServers: fleet.dnsServers,
      resolver: balance.resolver,
      plans: ({ manager, killSwitch }) =>
        new PlanReader({
          client: manager.client,
          namespace,
          records: recordsInUse(config),
          dns,
          mode: config.mode,
          isPaused: async () => killSwitch.isPaused,
          safety: config.safety,
          grants: processGrants(config.grants, namespace),
          env: io.env,
        }),
      route: async (question, signal) => traceInCluster(source.manager.client, question, requestRules(config), signal),
    })
    return part(source)
  }
}
