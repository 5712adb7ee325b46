/**
 * Webhooks of the load balancing kinds: conversion between v1 and v1beta1, defaults, and validation when an object is written.
 *
 * Everything is checked again when the controllers read an object, because a webhook may be absent: the webhook
 * only reports a fault earlier. Guarantees: a fault that the object had before is not reported again, so that it can still be
 * changed, released from finalizers and deleted; no field that a user wrote is changed.
 */
import type { AdmissionHooks, Immutable, Manager } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import type { z } from 'zod'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { DNSProvider } from '../api/dns-provider.ts'
import { addConversions, endpointToV1beta1, loadBalancerToV1beta1 } from '../api/v1/conversions.ts'
import { DNSLoadBalancerEndpointSpecV1, DNSLoadBalancerEndpointV1 } from '../api/v1/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancerSpecV1, DNSLoadBalancerV1 } from '../api/v1/dns-load-balancer.ts'
import { DNSProviderSpecV1, DNSProviderV1 } from '../api/v1/dns-provider.ts'
import { targetOf } from './decide/endpoints.ts'
import { BALANCE_DEFAULTS, readLoadBalancer } from './load-balancer.ts'
import { findProbeFault, type ProbeRules } from './probe-rules.ts'
import { readProvider } from './provider/decide-provider.ts'

export function addKindWebhooks(
  mgr: Pick<Manager, 'webhook' | 'conversion'>,
  /** False: conversion only, where nothing may be refused. */
  hasAdmission: boolean,
  /** Of health checks. @default everything is permitted */
  rules?: ProbeRules,
): void {
  addConversions(mgr)
  if (!hasAdmission) return
  mgr.webhook(DNSLoadBalancer, {
    default({ spec }) {
      if (spec.type === undefined && spec.singleton === undefined) spec.type = 'Balanced'
    },
    validate: newFaults<DNSLoadBalancer>((object) => faultsOfLoadBalancer(object, rules)),
  })
  mgr.webhook(DNSLoadBalancerV1, {
    default({ spec }) {
      spec.strategy ??= 'Balanced'
    },
    validate: newFaults<DNSLoadBalancerV1>((object) =>
      faultsBySchema(DNSLoadBalancerSpecV1, object.spec, () =>
        faultsOfLoadBalancer(loadBalancerToV1beta1(object), rules),
      ),
    ),
  })
  mgr.webhook(DNSLoadBalancerEndpoint, { validate: newFaults<DNSLoadBalancerEndpoint>(faultsOfEndpoint) })
  mgr.webhook(DNSLoadBalancerEndpointV1, {
    validate: newFaults<DNSLoadBalancerEndpointV1>((object) =>
      faultsBySchema(DNSLoadBalancerEndpointSpecV1, object.spec, () => faultsOfEndpoint(endpointToV1beta1(object))),
    ),
  })
  mgr.webhook(DNSProvider, {
    default({ spec }) {
      spec.scope = { type: 'Cluster', ...spec.scope }
    },
    validate: newFaults<DNSProvider>(faultsOfProvider),
  })
  mgr.webhook(DNSProviderV1, {
    default({ spec }) {
      spec.scope = { type: 'Cluster', ...spec.scope }
    },
    validate: newFaults<DNSProviderV1>((object) =>
      faultsBySchema(DNSProviderSpecV1, object.spec, () => faultsOfProvider(object)),
    ),
  })
}

function faultsOfLoadBalancer(object: Immutable<DNSLoadBalancer>, rules: ProbeRules | undefined): string[] {
  const read = readLoadBalancer(object, BALANCE_DEFAULTS)
  if ('invalid' in read) return [`spec: ${read.message}`]
  const fault = rules === undefined ? undefined : findProbeFault(object, read.settings.dnsName, rules)
  return fault === undefined ? [] : [`spec.healthCheck: ${fault}`]
}

function faultsOfEndpoint(object: Immutable<DNSLoadBalancerEndpoint>): string[] {
  if (object.spec.loadbalancer === '') return ['spec: the endpoint names no load balancer']
  return targetOf(object) === undefined
    ? ['spec: the endpoint has neither a usable address nor a usable host name']
    : []
}

function faultsOfProvider(object: Immutable<DNSProvider>): string[] {
  const read = readProvider(object)
  return 'invalid' in read ? [`spec: ${read.invalid}`] : []
}

/** The faults by the schema; where there are none, those by meaning. */
function faultsBySchema(schema: z.ZodType, spec: unknown, byMeaning: () => string[]): string[] {
  const parsed = schema.safeParse(spec)
  if (parsed.success) return byMeaning()
  return parsed.error.issues.map(({ path, message }) => `${['spec', ...path.map(String)].join('.')}: ${message}`)
}

function newFaults<T extends Obj>(faultsOf: (object: T) => string[]): NonNullable<AdmissionHooks<T>['validate']> {
  return (now, old) => {
    if (now === undefined) return []
    const before = new Set(old === undefined ? [] : faultsOf(old as T))
    return faultsOf(now as T).filter((fault) => !before.has(fault))
  }
}
