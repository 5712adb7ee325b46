/** Adds the DNS server to a manager. Every process answers; the one that leads writes. */
import { type Manager, requeue } from '@seamark/kube'
import type { DnsService } from './dns-service.ts'

/** One key: zones are few, and taken over together. */
const ZONES_KEY = 'zones'
/** Until a zone that could not be read is read again. */
const RETRY = '5s'

/** What every process does. */
export function setUpDns(manager: Manager, service: DnsService): void {
  manager.add('dns', async ({ signal }) => service.follow(signal))
  manager.check('readyz', 'dns', () => service.check())
}

/**
 * What the process does that leads, for one term. `untilPauseIsKnown` settles when it is known whether writing is paused: a
 * new zone is stored in the cluster.
 */
export function setUpDnsControl(
  manager: Manager,
  service: DnsService,
  untilPauseIsKnown: (signal: AbortSignal) => Promise<void> = async () => undefined,
): void {
  service.renew()
  manager
    .keyedController('dns-zones')
    .triggers((mark) => {
      mark([ZONES_KEY])
      return undefined
    })
    .reconcile(async (_key, { signal }) => {
      await untilPauseIsKnown(signal)
      return (await service.lead(signal)) ? undefined : requeue(RETRY)
    })
}
