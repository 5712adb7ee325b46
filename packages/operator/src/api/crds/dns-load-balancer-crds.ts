/**
 * The CRDs of the load balancing kinds: v1beta1 alone, or v1 (stored) and v1beta1 where a conversion webhook is served.
 *
 * A process without a webhook does not take v1 away from a cluster that has it: objects are stored in it.
 */
import type { CustomResourceDefinition, Immutable, WebhookClientConfig } from '@seamark/kube'
import { customResourceDefinition } from '@seamark/kube/crd'
import { DNSLoadBalancerEndpoint } from '../dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../dns-load-balancer.ts'
import { DNSProvider } from '../dns-provider.ts'
import { CRD_REVISION_ANNOTATION } from './install-crds.ts'
import { DNSLoadBalancerEndpointV1 } from '../v1/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancerV1 } from '../v1/dns-load-balancer.ts'
import { DNSProviderV1 } from '../v1/dns-provider.ts'

/** Increase it with every change of one of the schemas. */
const REVISION = '3'

const annotations = { [CRD_REVISION_ANNOTATION]: REVISION }

const KINDS = [
  { v1: DNSLoadBalancerV1, v1beta1: DNSLoadBalancer },
  { v1: DNSLoadBalancerEndpointV1, v1beta1: DNSLoadBalancerEndpoint },
  { v1: DNSProviderV1, v1beta1: DNSProvider },
]

/** `conversion`: where the API server finds the conversion webhook. @default none: v1beta1 alone */
export function loadBalancerCrds(conversion?: WebhookClientConfig): CustomResourceDefinition[] {
  return KINDS.map(({ v1, v1beta1 }) =>
    conversion === undefined
      ? customResourceDefinition(v1beta1, { annotations })
      : customResourceDefinition(v1, {
          also: [{ kind: v1beta1, served: true }],
          conversion: { clientConfig: conversion },
          annotations,
        }),
  )
}

/** Our CRD for a cluster that has this one: with v1 and the webhook that it has already, if any. Pure. */
export function keepStoredVersions(
  ours: CustomResourceDefinition,
  existing: Immutable<CustomResourceDefinition>,
): CustomResourceDefinition {
  const clientConfig = existing.spec.conversion?.webhook?.clientConfig
  const isStored = (definition: Immutable<CustomResourceDefinition>) =>
    definition.spec.versions.some(({ name }) => name === 'v1')
  if (clientConfig === undefined || !isStored(existing) || isStored(ours)) return ours
  return (
    loadBalancerCrds(structuredClone(clientConfig) as WebhookClientConfig).find(
      ({ metadata }) => metadata.name === ours.metadata.name,
    ) ?? ours
  )
}
