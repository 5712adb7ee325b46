/** What the gateway caches of an object: of ten thousand Services and Secrets only what a build reads. */
import type { ConfigMap, Secret, Service } from '@seamark/kube'

const NEEDED_KEYS = ['tls.crt', 'tls.key', 'ca.crt']

export function trimSecret(secret: Secret): Secret {
  const { data, type } = secret
  if (data === undefined) return secret
  const isUsable = type === 'kubernetes.io/tls' || type === 'Opaque' || type === undefined
  const kept = isUsable ? Object.entries(data).filter(([key]) => NEEDED_KEYS.includes(key)) : []
  return { ...secret, data: Object.fromEntries(kept) }
}

/** Only CA bundles are read. */
export function trimConfigMap(configMap: ConfigMap): ConfigMap {
  const { binaryData: _binaryData, data, ...rest } = configMap
  const bundle = data?.['ca.crt']
  return { ...rest, ...(bundle !== undefined && { data: { 'ca.crt': bundle } }) }
}

/** Most Services have no address: they share this. */
const NO_ADDRESS: NonNullable<Service['status']> = Object.freeze({})

/** Fields are assigned, not spread: objects that were made by spreading have a hidden class each, which takes more than they do. */
export function trimService(service: Service): Service {
  const { type, externalName, ports } = service.spec ?? {}
  const spec: NonNullable<Service['spec']> = {}
  if (type !== undefined) spec.type = type
  if (externalName !== undefined) spec.externalName = externalName
  if (ports !== undefined) spec.ports = ports
  service.spec = spec
  if (service.status?.loadBalancer?.ingress === undefined) service.status = NO_ADDRESS
  return service
}
