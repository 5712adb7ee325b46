/** What a dynamic RRset gets of the query. */
import type { ClientSubnet } from '../wire/edns.ts'

export interface QueryContext {
  /** The queried name, absolute, case as received; for a wildcard the name below it. */
  readonly name: string
  readonly type: string
  /** Source address of the query: the resolver. */
  readonly source: string
  /** The client's subnet as the resolver gives it (RFC 7871). */
  readonly subnet?: ClientSubnet
  readonly transport: 'udp' | 'tcp'
}
