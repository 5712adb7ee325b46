/**
 * Conversion of the load balancing kinds between v1 (hub) and v1beta1. Pure.
 *
 * The functions translate what both versions can express. The rest (`singleton`, `dnsname`, a status code of 0, values that only
 * one schema allows) is kept in an annotation by the runtime, so that a round trip from either side is the identity.
 * Objects are converted as stored: no field may be assumed to be present or valid.
 */
import type { Manager } from '@seamark/kube'
import type { DNSLoadBalancerEndpoint } from '../dns-load-balancer-endpoint.ts'
import type { DNSLoadBalancer } from '../dns-load-balancer.ts'
import type { DNSProvider } from '../dns-provider.ts'
import { DNSLoadBalancerEndpointV1 } from './dns-load-balancer-endpoint.ts'
import { DNSLoadBalancerV1 } from './dns-load-balancer.ts'
import { DNSProviderV1 } from './dns-provider.ts'

/** Registers the conversions with a webhook server. */
export function addConversions({ conversion }: Pick<Manager, 'conversion'>): void {
  conversion<DNSLoadBalancerV1, DNSLoadBalancer>(DNSLoadBalancerV1, [
    { version: 'v1beta1', toHub: loadBalancerToV1, fromHub: loadBalancerToV1beta1 },
  ])
  conversion<DNSLoadBalancerEndpointV1, DNSLoadBalancerEndpoint>(DNSLoadBalancerEndpointV1, [
    { version: 'v1beta1', toHub: endpointToV1, fromHub: endpointToV1beta1 },
  ])
  conversion<DNSProviderV1, DNSProvider>(DNSProviderV1, [
    // The versions differ in what their schemas allow only.
    { version: 'v1beta1', toHub: (object) => object as DNSProviderV1, fromHub: (object) => object },
  ])
}

const V1_NAMES = { loadbalancer: 'loadBalancer', ipaddress: 'address', cname: 'hostname' }
const V1BETA1_NAMES = { loadBalancer: 'loadbalancer', address: 'ipaddress', hostname: 'cname' }

function endpointToV1({ spec, ...object }: DNSLoadBalancerEndpoint): DNSLoadBalancerEndpointV1 {
  return { ...object, spec: renamed(spec, V1_NAMES) as DNSLoadBalancerEndpointV1['spec'] }
}

export function endpointToV1beta1({ spec, ...object }: DNSLoadBalancerEndpointV1): DNSLoadBalancerEndpoint {
  return { ...object, spec: renamed(spec, V1BETA1_NAMES) as DNSLoadBalancerEndpoint['spec'] }
}

function loadBalancerToV1({ spec, status, ...object }: DNSLoadBalancer): DNSLoadBalancerV1 {
  const { DNSName, dnsname, healthPath, statusCode, type, singleton, healthCheck, ...same } = spec
  const dnsName = DNSName ?? dnsname
  const strategy = strategyOf(type, singleton)
  const isCodeUsed = statusCode !== undefined && statusCode !== 0 && healthCheck?.statusCodes === undefined
  const check = {
    ...healthCheck,
    ...(healthPath !== undefined && { path: healthPath }),
    ...(isCodeUsed && { statusCodes: [statusCode] }),
  }
  return {
    ...object,
    spec: {
      ...same,
      ...(dnsName !== undefined && { dnsName }),
      ...(strategy !== undefined && { strategy }),
      ...((healthCheck !== undefined || Object.keys(check).length > 0) && { healthCheck: check }),
    } as DNSLoadBalancerV1['spec'],
    ...(status !== undefined && { status: withActive(status, V1_NAMES) }),
  }
}

export function loadBalancerToV1beta1({ spec, status, ...object }: DNSLoadBalancerV1): DNSLoadBalancer {
  const { dnsName, strategy, healthCheck, ...same } = spec as Partial<DNSLoadBalancerV1['spec']>
  const { path, statusCodes, ...rest } = healthCheck ?? {}
  const isOneCode = statusCodes?.length === 1
  const check = { ...rest, ...(!isOneCode && statusCodes !== undefined && { statusCodes }) }
  const isOnlyEmpty = healthCheck !== undefined && Object.keys(healthCheck).length === 0
  return {
    ...object,
    spec: {
      ...same,
      ...(dnsName !== undefined && { DNSName: dnsName }),
      ...(path !== undefined && { healthPath: path }),
      ...(isOneCode && { statusCode: statusCodes[0] }),
      ...(strategy !== undefined && { type: strategy }),
      ...((isOnlyEmpty || Object.keys(check).length > 0) && { healthCheck: check }),
    },
    ...(status !== undefined && {
      status: withActive(status, V1BETA1_NAMES),
    }),
  }
}

/** An object with both `type` and the older `singleton` is invalid, and so is its strategy. */
function strategyOf(type: string | undefined, singleton: boolean | undefined): string | undefined {
  const isTyped = type !== undefined && type !== ''
  if (singleton === undefined) return isTyped ? type : undefined
  if (isTyped) return ''
  return singleton ? 'Exclusive' : 'Balanced'
}

function withActive({ active, ...status }: { active?: object[] | undefined }, names: Names): object {
  return { ...status, ...(active !== undefined && { active: active.map((each) => renamed(each, names)) }) }
}

type Names = Readonly<Record<string, string>>

function renamed(object: object, names: Names): object {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [names[key] ?? key, value]))
}
