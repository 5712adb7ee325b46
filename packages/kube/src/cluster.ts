/**
 * One cluster: its client, its caches and its connections, all closed together.
 */
import type { Client } from './client.ts'
import type { Informers } from './informer.ts'
import type { Logger } from 'pino'

export interface Cluster {
  readonly name: string
  readonly client: Client
  readonly informers: Informers
  readonly log: Logger
  /** Stops watches and closes every connection; resolves when they are gone. */
  close(): Promise<void>
}
