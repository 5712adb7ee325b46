/** Adds the DNS server to a manager. Every process answers; the one that leads writes. */
import type { Manager } from '@seamark/kube'
import type { DnsService } from './dns-service.ts'

/** `untilPauseIsKnown` settles when it is known whether writing is paused: a new zone is stored in the cluster. */
export function setUpDns(
  manager: Manager,
  service: DnsService,
  untilPauseIsKnown: (signal: AbortSignal) => Promise<void> = async () => undefined,
): void {
  manager.add('dns', async ({ signal }) => service.follow(signal))
  const lead = async (signal: AbortSignal): Promise<void> => {
    await untilPauseIsKnown(signal)
    await service.lead(signal)
  }
  manager.add('dns-zones', async ({ signal }) => lead(signal), { leader: true })
  manager.check('readyz', 'dns', () => service.check())
}
