/**
 * Minimal CRDs of the foreign kinds we use, so that the playground and examples work where Contour, cert-manager and
 * ExternalDNS are not installed. Their schemas cover the fields we read and write and preserve all others; where the real
 * projects are installed, their CRDs are used instead.
 */
import type { CustomResourceDefinition } from '@seamark/kube'
import type { Kind } from '@seamark/kube/object'
import { Certificate } from '../certificate.ts'
import { DNSEndpoint } from '../dns-endpoint.ts'
import { Gateway, HTTPRoute, ReferenceGrant } from '@seamark/kube/gateway-api'
import { HTTPProxy, IngressRoute, TLSCertificateDelegation } from '@seamark/kube/contour'
import { Route } from '../route.ts'

type Schema = Record<string, unknown>

interface Column {
  readonly name: string
  readonly jsonPath: string
  readonly type?: string
}

const text: Schema = { type: 'string' }
const open: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
const list = (items: Schema, listType = 'atomic'): Schema => ({
  type: 'array',
  items,
  'x-kubernetes-list-type': listType,
})
const object = (properties: Record<string, Schema>, required?: string[]): Schema => ({
  type: 'object',
  properties,
  'x-kubernetes-preserve-unknown-fields': true,
  ...(required !== undefined && { required }),
})

const FQDN = String.raw`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`

const virtualhost = object({
  fqdn: { type: 'string', pattern: FQDN },
  tls: object({ secretName: text, passthrough: { type: 'boolean' } }),
})

const conditions: Schema = {
  type: 'array',
  items: object({ type: text, status: text, reason: text, message: text, lastTransitionTime: text }, [
    'type',
    'status',
  ]),
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
}

const endpoint = object({
  dnsName: text,
  recordType: text,
  targets: list(text),
  recordTTL: { type: 'integer', format: 'int64' },
  setIdentifier: text,
  labels: { type: 'object', additionalProperties: text },
  providerSpecific: list(object({ name: text, value: text })),
})

/** Groups of Kubernetes itself: an API server refuses their CRDs without an approval annotation. */
const isProtected = (group: string) => /(^|\.)(k8s|kubernetes)\.io$/.test(group)
const unapproved = {
  'api-approved.kubernetes.io': 'unapproved, a small stand-in for the definition of the project itself',
}

function crd(
  kind: Kind,
  spec: Schema,
  status: Schema,
  columns: readonly Column[],
  shortNames: string[] = [],
): CustomResourceDefinition {
  const singular = kind.kind.toLowerCase()
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${kind.group}`, ...(isProtected(kind.group) && { annotations: unapproved }) },
    spec: {
      group: kind.group,
      scope: 'Namespaced',
      names: { kind: kind.kind, plural: kind.plural, singular, listKind: `${kind.kind}List`, shortNames },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec, status } } },
          subresources: { status: {} },
          additionalPrinterColumns: columns.map(({ type = 'string', ...column }) => ({ type, ...column })),
        },
      ],
    },
  }
}

const age = { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' }
const host = { name: 'FQDN', jsonPath: '.spec.virtualhost.fqdn' }
const proxyStatus = object({ currentStatus: text, description: text, conditions })

/** Contour no longer ships it. */
export function ingressRouteCrd(): CustomResourceDefinition {
  return crd(IngressRoute, object({ virtualhost }), proxyStatus, [host, age])
}

/** ExternalDNS' own is used where it is installed. */
export function dnsEndpointCrd(): CustomResourceDefinition {
  return crd(
    DNSEndpoint,
    object({ endpoints: list(endpoint) }),
    object({ observedGeneration: { type: 'integer', format: 'int64' } }),
    [
      { name: 'Name', jsonPath: '.spec.endpoints[0].dnsName' },
      { name: 'Targets', jsonPath: '.spec.endpoints[0].targets' },
      age,
    ],
  )
}

/** CRDs of the kinds that the playground shows. */
export function playgroundCrds(): CustomResourceDefinition[] {
  return [
    crd(
      HTTPProxy,
      object({ virtualhost, ingressClassName: text }),
      proxyStatus,
      [host, { name: 'Status', jsonPath: '.status.currentStatus' }, age],
      ['proxy', 'proxies'],
    ),
    ingressRouteCrd(),
    crd(
      TLSCertificateDelegation,
      object(
        {
          delegations: list(
            object({ secretName: text, targetNamespaces: list(text) }, ['secretName', 'targetNamespaces']),
          ),
        },
        ['delegations'],
      ),
      open,
      [age],
      ['tlscerts'],
    ),
    dnsEndpointCrd(),
    crd(
      Certificate,
      certificateSpec(),
      object({ conditions }),
      [{ name: 'Secret', jsonPath: '.spec.secretName' }, age],
      ['cert', 'certs'],
    ),
    crd(Gateway, open, open, [age], ['gtw']),
    crd(HTTPRoute, open, open, [age]),
    crd(ReferenceGrant, open, open, [age], ['refgrant']),
    crd(Route, open, open, [age]),
  ]
}

function certificateSpec(): Schema {
  return object(
    {
      dnsNames: list(text),
      commonName: { type: 'string', maxLength: 64 },
      secretName: text,
      issuerRef: object({ name: text, kind: text, group: text }, ['name']),
      usages: list(text),
      revisionHistoryLimit: { type: 'integer', format: 'int32', minimum: 1 },
      secretTemplate: object({
        annotations: { type: 'object', additionalProperties: text },
        labels: { type: 'object', additionalProperties: text },
      }),
      privateKey: object({
        algorithm: { type: 'string', enum: ['RSA', 'ECDSA', 'Ed25519'] },
        size: { type: 'integer' },
      }),
    },
    ['secretName', 'issuerRef'],
  )
}
