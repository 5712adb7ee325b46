/**
 * Whether the API server stores conditions of a custom kind. Read from its CRD, so that nothing is written to find out:
 * ExternalDNS' own CRD of DNSEndpoint has no conditions, and the server drops unknown fields silently.
 */
import { type Client, CustomResourceDefinition, Forbidden } from '@seamark/kube'
import type { Kind } from '@seamark/kube/object'

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
}

export async function supportsConditions(client: Client, kind: Kind, signal: AbortSignal): Promise<boolean> {
  const name = `${kind.plural}.${kind.group}`
  const definition = await client.find(CustomResourceDefinition, name, { signal }).catch((error: unknown) => {
    if (error instanceof Forbidden) return undefined
    throw error
  })
  const version = definition?.spec.versions.find((item) => item.name === kind.version)
  const schema: Schema | undefined = version?.schema?.openAPIV3Schema
  const status = schema?.properties?.['status']
  if (status === undefined) return false
  return status['x-kubernetes-preserve-unknown-fields'] === true || status.properties?.['conditions'] !== undefined
}
