/**
 * The connection settings of one cluster: the result of every loader (config.ts, remote-config.ts, in-cluster.ts) and
 * the input of `connect`. This module reads no files and starts no processes.
 */
import type { AddressGuard } from './address-guard.ts'
import type { Credentials } from './credentials.ts'

export interface ClusterConfig {
  /** For logs, metrics and keys: the context's or cluster's name. */
  readonly name: string
  /** `https://host:port`, optionally with a path; no trailing slash. */
  readonly server: string
  readonly credentials: Credentials
  /** The context's namespace. @default `default` */
  readonly namespace: string
  /** `http:`, `https:`, `socks5:` or `socks5h:` proxy. */
  readonly proxyUrl?: string
  /** Checks every address before a connection to it is opened. */
  readonly guard?: AddressGuard
}
