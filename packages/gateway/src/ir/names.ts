/** Names in the IR: of clusters and certificates, by content, so that equal configuration has equal names. */
import { hash } from 'node:crypto'
import type { Cluster } from './model.ts'

export function contentHash(content: string): string {
  return hash('sha256', content, 'hex').slice(0, 10)
}

/** `namespace/service/port/hash of the policy`: one Service with two policies is two clusters. */
export function nameCluster(base: string, cluster: Omit<Cluster, 'name'>): Cluster {
  return { name: `${base}/${contentHash(JSON.stringify(cluster))}`, ...cluster }
}
