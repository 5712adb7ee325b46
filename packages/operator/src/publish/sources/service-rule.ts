/** The load balancer of a source, and its addresses. */
import type { Immutable } from '@seamark/kube/object'
import type { Service } from '@seamark/kube'
import { classOf, sortAddresses } from '@seamark/dialects'
import { warning } from '../../finding.ts'
import type { PublishOptions } from '../options.ts'
import type { Source, Target } from './source.ts'

/** The rule for the class of the source, else the one without a class. */
function findService(source: Source, options: PublishOptions): string | undefined {
  const className = classOf(source.annotations, source.className)
  const own = options.services.find((rule) => rule.className !== undefined && rule.className === className)
  return (own ?? options.services.find((rule) => rule.className === undefined))?.service
}

export function targetOf(
  source: Source,
  options: PublishOptions,
  find: (key: string) => Immutable<Service> | undefined,
): Target {
  const { origin } = source
  if (origin.type === 'unknown')
    return {
      state: 'unknown',
      finding: warning('ParentNotFound', `${origin.message}; published records are unchanged`),
    }
  if (origin.type === 'addresses')
    return { state: 'known', addresses: origin.addresses, from: `${source.kind} ${source.namespace}/${source.name}` }
  const key = findService(source, options)
  if (key === undefined) {
    const message = `no load balancer Service is configured for the class ${JSON.stringify(classOf(source.annotations, source.className))}; add one to publish.services`
    return { state: 'unknown', finding: warning('ServiceNotFound', message) }
  }
  const service = find(key)
  if (service === undefined) {
    return {
      state: 'unknown',
      finding: warning(
        'ServiceNotFound',
        `Service ${key} does not exist; published records are unchanged. Create it, or correct publish.services`,
      ),
    }
  }
  return { state: 'known', addresses: addressesOf(service), from: `service ${key}` }
}

/** Cached by object: ten thousand sources may use one Service. */
const known = new WeakMap<object, ReturnType<typeof sortAddresses>>()

function addressesOf(service: Immutable<Service>) {
  let addresses = known.get(service)
  if (addresses === undefined) {
    addresses = sortAddresses(service.status?.loadBalancer?.ingress ?? [])
    known.set(service, addresses)
  }
  return addresses
}
