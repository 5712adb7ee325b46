/** Certificates of the xDS port in the middle of their rotation: there is a new authority, and what is used is of the old one. */
import { type Client, Secret } from '@seamark/kube'
import { type Authority, createAuthority } from '@seamark/kube/certificates'
import { eventually } from '../lives/life.ts'

/** Everybody knows the new authority since. */
const KNOWN_MS = 3_600_000
/** The manager looks every 30 s. */
const LIMIT_MS = 90_000

const SIDES = [
  { name: 'seamark-xds', usages: 'server' },
  { name: 'seamark-xds-client', usages: 'client' },
] as const

/** Before the manager starts. @param service by which Envoys connect */
export async function writeOldCertificates(client: Client, namespace: string, service: string): Promise<void> {
  for (const { name, usages } of SIDES) {
    const authority = async (): Promise<Authority> =>
      createAuthority({ commonName: 'webhook-ca', now: () => Date.now() - KNOWN_MS })
    const [old, next] = [await authority(), await authority()]
    const dnsNames = [usages === 'server' ? service : 'seamark-envoy']
    const leaf = await old.issue({ commonName: 'old', dnsNames, ipAddresses: [], usages })
    const stringData = {
      'ca.crt': next.certPem + old.certPem,
      'ca.key': next.keyPem,
      'tls.crt': leaf.certPem,
      'tls.key': leaf.keyPem,
    }
    await client.create(Secret, { metadata: { namespace, name }, type: 'kubernetes.io/tls', stringData })
  }
}

export async function readCertificates(client: Client, namespace: string): Promise<string[]> {
  const secrets = SIDES.map(async ({ name }) => client.get(Secret, `${namespace}/${name}`))
  return (await Promise.all(secrets)).map(({ data }) => data?.['tls.crt'] ?? '')
}

/** Resolves when both sides have certificates of the new authority. */
export async function areRotated(client: Client, namespace: string, old: readonly string[]): Promise<void> {
  await eventually(
    'new certificates',
    async () => readCertificates(client, namespace),
    (now) => now.every((each, at) => each !== old[at]),
    LIMIT_MS,
  )
}
