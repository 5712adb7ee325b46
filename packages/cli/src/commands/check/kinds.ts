/** Kinds of others and of Seamark: whether their CRDs are installed, and serve the versions that are read and written. */
import { type Client, CustomResourceDefinition, Forbidden } from '@seamark/kube'
import type { Kind } from '@seamark/kube/object'
import {
  BackendTLSPolicy,
  Certificate,
  DNSEndpoint,
  fleetCrds,
  Gateway,
  GatewayClass,
  GRPCRoute,
  HTTPProxy,
  HTTPRoute,
  loadBalancerCrds,
  type PartName,
  ReferenceGrant,
  TLSCertificateDelegation,
  TLSRoute,
} from '@seamark/operator'
import type { Finding } from './finding.ts'

interface Needed {
  readonly of: string
  readonly name: string
  readonly version: string
  /** Without it these parts do not work; without any, hosts of the kind are waited for. */
  readonly by: readonly PartName[]
}

const needed = (of: string, { plural, group, version }: Kind, by: readonly PartName[] = []): Needed => ({
  of,
  name: `${plural}.${group}`,
  version,
  by,
})

const OTHERS: readonly Needed[] = [
  needed('ExternalDNS', DNSEndpoint, ['publish', 'wildcard', 'balance']),
  needed('cert-manager', Certificate),
  needed('Contour', HTTPProxy),
  needed('Contour', TLSCertificateDelegation),
  ...[GatewayClass, Gateway, HTTPRoute, GRPCRoute, TLSRoute, BackendTLSPolicy, ReferenceGrant].map((kind) =>
    needed('Gateway API', kind),
  ),
]

export async function checkKinds(
  client: Client,
  { parts, installsCrds }: { readonly parts: readonly PartName[]; readonly installsCrds: boolean },
  signal: AbortSignal,
): Promise<Finding[]> {
  const own = (of: string, crds: ReturnType<typeof fleetCrds>, by: readonly PartName[]): Needed[] =>
    crds.map(({ metadata, spec }) => ({
      of,
      name: metadata.name ?? '',
      version: spec.versions[0]?.name ?? '',
      by: installsCrds ? [] : by,
    }))
  const ours = [
    ...(parts.includes('fleet') ? own('Seamark', fleetCrds(), ['fleet']) : []),
    ...(parts.includes('fleet') || parts.includes('balance')
      ? own('Seamark', loadBalancerCrds(), ['fleet', 'balance'])
      : []),
  ]
  return Promise.all([...OTHERS, ...ours].map(async (kind) => checkKind(client, kind, parts, signal)))
}

async function checkKind(
  client: Client,
  { of, name, version, by }: Needed,
  parts: readonly PartName[],
  signal: AbortSignal,
): Promise<Finding> {
  const topic = 'kinds'
  const users = by.filter((part) => parts.includes(part))
  try {
    const crd = await client.find(CustomResourceDefinition, name, { signal })
    if (crd === undefined)
      return users.length === 0
        ? { topic, state: 'note', message: `${name} (${of}) is not installed; it is waited for` }
        : {
            topic,
            state: 'fault',
            message: `${name} (${of}) is not installed, and ${users.join(', ')} cannot do without; install its CRD${of === 'Seamark' ? ': seamark crds | kubectl apply -f -' : ''}`,
          }
    const served = crd.spec.versions.filter((each) => each.served).map((each) => each.name)
    return served.includes(version)
      ? { topic, state: 'ok', message: `${name} (${of}) serves ${served.join(', ')}` }
      : {
          topic,
          state: users.length === 0 ? 'warning' : 'fault',
          message: `${name} (${of}) serves ${served.join(', ') || 'no version'}, and not ${version}; install a release of ${of} that serves it`,
        }
  } catch (error) {
    if (!(error instanceof Forbidden)) throw error
    return { topic, state: 'note', message: `${name} (${of}) cannot be read with these credentials` }
  }
}
