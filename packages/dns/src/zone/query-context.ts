/** What a dynamic record set may look at. */
import type { ClientSubnet } from '../wire/edns.ts'

export interface QueryContext {
  /** The name asked for as it was written, absolute; for a wildcard the name below it. */
  readonly name: string
  readonly type: string
  /** Address of the resolver that asks. */
  readonly source: string
  /** What the resolver says about its client (RFC 7871). */
  readonly subnet?: ClientSubnet
  readonly transport: 'udp' | 'tcp'
}
