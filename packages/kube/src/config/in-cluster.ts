/**
 * A pod's service account: token and CA are mounted files that the kubelet rotates, so both are read again every minute
 * and after a 401; if a read fails the last valid token is kept (kubernetes#68164).
 */
import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import { systemClock, type Clock } from '../clock.ts'
import type { ClusterConfig } from './cluster-config.ts'
import { refreshingCredentials } from './credentials.ts'
import { ConfigError, messageOf } from '../errors.ts'

const FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'
const REFRESH_MS = 60_000

export interface InClusterOptions {
  env?: Readonly<Record<string, string | undefined>>
  /** @default /var/run/secrets/kubernetes.io/serviceaccount */
  folder?: string
  clock?: Clock
}

export async function loadInCluster(options: InClusterOptions = {}): Promise<ClusterConfig> {
  const { env = process.env, folder = FOLDER, clock = systemClock } = options
  const host = env['KUBERNETES_SERVICE_HOST'] ?? ''
  const port = env['KUBERNETES_SERVICE_PORT'] ?? ''
  if (host === '' || port === '') {
    throw new ConfigError(
      'NOT_IN_CLUSTER',
      'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod',
    )
  }
  const credentials = refreshingCredentials(async () => {
    const [token, ca] = await Promise.all([readMounted(folder, 'token'), readMounted(folder, 'ca.crt')])
    return { headers: { authorization: `Bearer ${token}` }, tls: { ca }, refreshInMs: REFRESH_MS }
  }, clock)
  // Fail here, with a clear message, rather than at the first request.
  await credentials.headers()
  const namespace = await readMounted(folder, 'namespace').catch(() => 'default')
  return { name: 'in-cluster', server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`, credentials, namespace }
}

async function readMounted(folder: string, name: string): Promise<string> {
  const path = join(folder, name)
  try {
    const text = (await readFile(path, 'utf8')).trim()
    if (text !== '') return text
  } catch (cause) {
    throw new ConfigError('NOT_IN_CLUSTER', `cannot read the service account: ${messageOf(cause)}`, { cause })
  }
  throw new ConfigError('NOT_IN_CLUSTER', `cannot read the service account: ${path} is empty`)
}
