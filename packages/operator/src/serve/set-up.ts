/** Adds the DNS server to a manager. Every process answers; the one that leads writes. */
import type { Manager } from '@seamark/kube'
import type { DnsService } from './dns-service.ts'

export function setUpDns(manager: Manager, service: DnsService): void {
  manager.add('dns', async ({ signal }) => service.follow(signal))
  manager.add('dns-zones', async ({ signal }) => service.lead(signal), { leader: true })
  manager.check('readyz', 'dns', () => service.check())
}
