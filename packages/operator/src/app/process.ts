/**
 * What all capabilities share. For as long as the process lives: the switches, the DNS server. For each term: reports, the guard
 * against a second writer, and when writing is allowed.
 */
import type { Clock, Manager } from '@seamark/kube'
import { createProductMetrics } from '../metrics.ts'
import { showPause } from '../process/pause-metric.ts'
import type { KillSwitchControl } from '../process/kill-switch.ts'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { checkKinds } from '../process/reports/kind-faults.ts'
import { createNotices } from '../process/reports/notices.ts'
import { addPeerCheck } from '../process/peer-check.ts'
import { addProcessReports } from '../process/reports/process-reports.ts'
import { SecondWriterGuard } from '../safety/second-writer-guard.ts'
import { createDnsMetrics } from '../serve/dns-metrics.ts'
import type { DnsService } from '../serve/dns-service.ts'
import { setUpDns, setUpDnsControl } from '../serve/set-up.ts'
import { type Switches, watchSwitches } from '../process/switches.ts'
import type { AppOptions } from './options.ts'

interface ProcessDeps {
  readonly dns: DnsService | undefined
  readonly clock: Clock
  readonly killSwitch: KillSwitchControl
}

/** Serves, whether this process leads or not. */
export function setUpServing(mgr: Manager, options: AppOptions, { dns, clock, killSwitch }: ProcessDeps): Switches {
  const { hasPause = true, namespace } = options
  const { registry } = mgr.metrics
  showPause(registry, killSwitch)
  const { publish, wildcard, balance, records } = options
  const writesRecords = [publish, wildcard, balance, records].some((each) => each !== undefined)
  checkKinds(mgr, new Set(writesRecords ? [DNSEndpoint] : []))
  if (dns !== undefined) {
    setUpDns(mgr, dns)
    createDnsMetrics(registry, dns)
  }
  return hasPause ? watchSwitches(mgr.cluster, namespace, killSwitch, clock) : NO_SWITCHES
}

interface TermDeps extends ProcessDeps {
  /** They call no listener after the term. */
  readonly switches: Switches
  /** As in ProcessReportDeps; the same in every term. */
  readonly leadership: { reported: string }
}

export function setUpProcess(mgr: Manager, options: AppOptions, deps: TermDeps) {
  const { dns, clock, killSwitch, switches } = deps
  const { namespace, mode, hasPause = true } = options
  const metrics = createProductMetrics(mgr.metrics.registry)
  if (dns !== undefined) setUpDnsControl(mgr, dns, async (running) => switches.ready(running))
  const isWriting = (): boolean => mode === 'enforce' && !killSwitch.isPaused
  const notify = createNotices(mgr, {
    namespace,
    mayReport: isWriting,
    ...(options.changes !== undefined && { queue: options.changes }),
  })
  const own = options.leader === undefined ? undefined : `${options.leader.namespace}/${options.leader.lease}`
  const peers = addPeerCheck(mgr, own, notify)
  const { ownsConfigurationObject = false } = options
  if (hasPause)
    addProcessReports(mgr, {
      namespace,
      mode,
      killSwitch,
      switches,
      isWriting,
      lease: own,
      ownsConfigurationObject,
      notify,
      clock,
      leadership: deps.leadership,
    })
  const secondWriter = new SecondWriterGuard({
    client: mgr.client,
    clock,
    namespace: hasPause ? namespace : undefined,
    findPeers: peers.find,
    onStopped: ({ reason, message }) => notify({ reason, severity: 'Warning', message }),
  })
  switches.subscribe(() => secondWriter.resume())
  const common = {
    metrics,
    namespace,
    clock,
    mode,
    isWriting,
    notify,
    secondWriter,
    // A reconcile creates its signal on first use, and most need none.
    untilMayWrite: (running: { readonly signal: AbortSignal }) =>
      mode === 'enforce' && !(switches.isRead && peers.isDone)
        ? Promise.all([switches.ready(running.signal), peers.ready(running.signal)])
        : undefined,
  }
  return { peers, common }
}

const NO_SWITCHES: Switches = {
  approvedIds: new Set(),
  releasedNames: new Set(),
  subscribe: () => () => undefined,
  isRead: true,
  ready: async () => undefined,
}
