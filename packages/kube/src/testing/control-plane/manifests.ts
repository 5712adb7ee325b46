/**
 * Kubernetes manifests for a test control plane: reads them from files and folders, and points their webhooks at a
 * local server, because the Service in a manifest does not exist in tests.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { parseAllDocuments } from 'yaml'

export interface Manifest extends Record<string, unknown> {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string }
}

export interface LocalWebhook {
  /** `https://127.0.0.1:PORT` */
  url: string
  caPem: string
}

/** Built-in cluster-scoped kinds; a CRD declares its scope. */
const CLUSTER_SCOPED = new Set([
  'Namespace',
  'Node',
  'CustomResourceDefinition',
  'ClusterRole',
  'ClusterRoleBinding',
  'IngressClass',
  'MutatingWebhookConfiguration',
  'ValidatingWebhookConfiguration',
])

export async function readManifests(source: string | readonly (string | object)[]): Promise<Manifest[]> {
  const manifests: Manifest[] = []
  for (const entry of typeof source === 'string' ? [source] : source) {
    if (typeof entry === 'object') manifests.push(entry as Manifest)
    else for (const file of await manifestFiles(entry)) manifests.push(...(await readManifestFile(file)))
  }
  return manifests
}

async function manifestFiles(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path]
  const names = (await readdir(path)).filter((name) => ['.yaml', '.yml', '.json'].includes(extname(name)))
  return names.toSorted().map((name) => join(path, name))
}

async function readManifestFile(file: string): Promise<Manifest[]> {
  const documents = parseAllDocuments(await readFile(file, 'utf8'))
  return [...documents].flatMap((document): Manifest[] => {
    const [error] = document.errors
    if (error !== undefined) throw new Error(`${file} is not a manifest: ${error.message}`, { cause: error })
    const value = document.toJS() as Manifest | null
    return value === null ? [] : [value]
  })
}

/** URL path of one object, for built-in kinds only: their plural is derived by the English rule. */
export function apiPathOf({ apiVersion, kind, metadata }: Manifest): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const scope = CLUSTER_SCOPED.has(kind) ? '' : `/namespaces/${metadata.namespace ?? 'default'}`
  const lower = kind.toLowerCase()
  const plural = lower.endsWith('s') ? `${lower}es` : lower.endsWith('y') ? `${lower.slice(0, -1)}ies` : `${lower}s`
  return `${root}${scope}/${plural}/${metadata.name}`
}

/** The manifest with every `clientConfig` with a Service changed to `local`, keeping the path. */
export function rewriteWebhooks(manifest: Manifest, local: LocalWebhook): Manifest {
  return rewrite(manifest, local) as Manifest
}

function rewrite(value: unknown, local: LocalWebhook): unknown {
  if (Array.isArray(value)) return value.map((entry) => rewrite(entry, local))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => {
      const service = key === 'clientConfig' ? (entry as { service?: { path?: string } }).service : undefined
      return [key, service === undefined ? rewrite(entry, local) : localConfig(service, local)]
    }),
  )
}

function localConfig(service: { path?: string }, local: LocalWebhook) {
  return { url: `${local.url}${service.path ?? ''}`, caBundle: Buffer.from(local.caPem).toString('base64') }
}
