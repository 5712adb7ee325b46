/** GatewayClass is not among the kinds that the playground serves; where the upstream CRDs are absent, a small one is used. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

export function gatewayClassCrd(): object[] {
  if (existsSync(join(import.meta.dirname, '../../../../shared/crds'))) return []
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  return [
    {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: {
        name: 'gatewayclasses.gateway.networking.k8s.io',
        annotations: { 'api-approved.kubernetes.io': 'unapproved, for tests' },
      },
      spec: {
        group: 'gateway.networking.k8s.io',
        scope: 'Cluster',
        names: {
          kind: 'GatewayClass',
          plural: 'gatewayclasses',
          singular: 'gatewayclass',
          listKind: 'GatewayClassList',
        },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: { status: {} },
            schema: { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } },
          },
        ],
      },
    },
  ]
}
