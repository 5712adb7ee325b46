/** CA bundles that Gateway API objects refer to: the key `ca.crt` of a ConfigMap or Secret. */
import { ConfigMap, Secret } from '@seamark/kube'
import type { CaCertificateRef } from '@seamark/kube/gateway-api'
import type { Immutable } from '@seamark/kube/object'
import { isReferenceGranted } from './reference-grant.ts'
import type { Objects } from '../../draft/input.ts'
import { parseCaBundle, secretText } from '../../draft/secrets.ts'

export type CaFault = { readonly kind: 'ref' | 'kind' | 'forbidden'; readonly message: string }

export interface CaBundles {
  /** PEM of all bundles that could be read; empty if none. */
  readonly ca: string
  /** Of the first reference that could not. */
  readonly fault?: CaFault
}

/** @param from the object that refers; other namespaces need a ReferenceGrant */
export function readCaRefs(
  objects: Objects,
  from: { readonly kind: string; readonly namespace: string },
  refs: readonly Immutable<CaCertificateRef>[],
): CaBundles {
  let ca = ''
  let fault: CaFault | undefined
  for (const ref of refs) {
    const found = readCaRef(objects, from, ref)
    if ('ca' in found) ca += found.ca
    else fault ??= found
  }
  return { ca, ...(fault !== undefined && { fault }) }
}

function readCaRef(
  objects: Objects,
  from: { readonly kind: string; readonly namespace: string },
  { group = '', kind = 'ConfigMap', name, namespace = from.namespace }: Immutable<CaCertificateRef>,
): { ca: string } | CaFault {
  if (group !== '' || (kind !== 'ConfigMap' && kind !== 'Secret'))
    return { kind: 'kind', message: `caCertificateRefs must be ConfigMaps or Secrets, not ${kind}` }
  const what = `${kind} ${namespace}/${name}`
  if (!isReferenceGranted(objects, from, { kind, namespace, name }))
    return { kind: 'forbidden', message: `no ReferenceGrant permits ${what}` }
  const key = `${namespace}/${name}`
  const text = kind === 'ConfigMap' ? objects.get(ConfigMap, key)?.data?.['ca.crt'] : caOfSecret(objects, key)
  if (text === undefined) return { kind: 'ref', message: `${what} does not exist or has no key "ca.crt"` }
  const parsed = parseCaBundle(text)
  return 'fault' in parsed ? { kind: 'ref', message: `${what}: ${parsed.fault}` } : { ca: parsed.ca }
}

function caOfSecret(objects: Objects, key: string): string | undefined {
  const secret = objects.get(Secret, key)
  return secret === undefined ? undefined : secretText(secret, 'ca.crt')
}
