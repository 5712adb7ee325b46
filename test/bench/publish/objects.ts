/** The objects of the publish bench: the same bodies for the raw loop and for us. */
export const NAMESPACE = 'bench'
export const SERVICE = 'bench/envoy'
export const ADDRESS = '192.0.2.1'
export const MOVED_ADDRESS = '192.0.2.2'

const name = (index: number): string => `proxy-${String(index).padStart(6, '0')}`
const host = (index: number): string => `${name(index)}.bench.example.com`

export function proxyBody(index: number): string {
  return JSON.stringify({
    apiVersion: 'projectcontour.io/v1',
    kind: 'HTTPProxy',
    metadata: { namespace: NAMESPACE, name: name(index), annotations: { 'kubernetes.io/tls-acme': 'true' } },
    spec: {
      virtualhost: { fqdn: host(index), tls: { secretName: name(index) } },
      routes: [{ services: [{ name: 'web', port: 80 }] }],
    },
  })
}

function metadata(index: number): object {
  return {
    name: name(index),
    namespace: NAMESPACE,
    annotations: { 'contour-plus.cybozu.com/owned-by': `${NAMESPACE}/${name(index)}` },
    ownerReferences: [
      {
        apiVersion: 'projectcontour.io/v1',
        kind: 'HTTPProxy',
        name: name(index),
        uid: '00000000-0000-0000-0000-000000000001',
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  }
}

export interface RawWrite {
  readonly path: string
  readonly body: string
}

export function dnsWrite(index: number, address: string): RawWrite {
  const endpoints = [{ dnsName: host(index), recordType: 'A', targets: [address], recordTTL: 3600 }]
  return {
    path: `/apis/externaldns.k8s.io/v1alpha1/namespaces/${NAMESPACE}/dnsendpoints/${name(index)}?fieldManager=contour-plus&force=true`,
    body: JSON.stringify({
      apiVersion: 'externaldns.k8s.io/v1alpha1',
      kind: 'DNSEndpoint',
      metadata: metadata(index),
      spec: { endpoints },
    }),
  }
}

export function certificateWrite(index: number): RawWrite {
  const spec = {
    dnsNames: [host(index)],
    commonName: host(index),
    secretName: name(index),
    issuerRef: { kind: 'ClusterIssuer', name: 'issuer' },
    usages: ['digital signature', 'key encipherment', 'server auth'],
  }
  return {
    path: `/apis/cert-manager.io/v1/namespaces/${NAMESPACE}/certificates/${name(index)}?fieldManager=contour-plus&force=true`,
    body: JSON.stringify({ apiVersion: 'cert-manager.io/v1', kind: 'Certificate', metadata: metadata(index), spec }),
  }
}
