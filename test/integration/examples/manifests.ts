/** The manifests under examples/, read and applied as `kubectl apply -f` does. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { parseAllDocuments } from 'yaml'

const folder = join(import.meta.dirname, '../../../examples')

export type Manifest = Obj & Record<string, unknown>

export function readExample(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document) => document.toJS() as Manifest)
}

const PLURALS: Readonly<Record<string, string>> = {
  HTTPProxy: 'httpproxies',
  DNSEndpoint: 'dnsendpoints',
  GlobalIngressPolicy: 'globalingresspolicies',
  IngressClass: 'ingressclasses',
  GatewayClass: 'gatewayclasses',
  Ingress: 'ingresses',
  NetworkPolicy: 'networkpolicies',
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
}

export async function applyExample(
  client: Client,
  file: string,
  isWanted: (manifest: Manifest) => boolean = () => true,
): Promise<void> {
  for (const manifest of readExample(file).filter(isWanted)) await applyManifest(client, manifest)
}

export async function applyManifest(client: Client, manifest: Manifest): Promise<void> {
  const { apiVersion = '', kind = '' } = manifest
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
  const plural = PLURALS[kind] ?? `${kind.toLowerCase()}s`
  const namespaced = manifest.metadata.namespace !== undefined
  await client.apply({ group: group ?? '', version: version ?? '', kind, plural, namespaced }, manifest, {
    force: true,
  })
}
