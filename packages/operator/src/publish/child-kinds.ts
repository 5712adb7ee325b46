/** The kinds that publish writes, by configuration: a delegation is written with its Certificate. */
import type { Kind } from '@seamark/kube/object'
import { Certificate } from '../api/certificate.ts'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { TLSCertificateDelegation } from '@seamark/kube/contour'
import type { PublishOptions } from './options.ts'
import type { Child } from './decide/plan.ts'

export function childKinds(options: Pick<PublishOptions, 'children'>): Kind<Child>[] {
  return [
    ...(options.children.includes('DNSEndpoint') ? [DNSEndpoint] : []),
    ...(options.children.includes('Certificate') ? [Certificate, TLSCertificateDelegation] : []),
  ]
}
