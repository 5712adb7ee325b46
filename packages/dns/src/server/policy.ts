/** Who may do more than ask: per zone, the keys that may update and transfer it, and who is told when it changes. */
import type { Fqdn } from '../wire/name.ts'
import type { Resource } from '../wire/record.ts'

export interface Secondary {
  readonly address: string
  /** @default 53 */
  readonly port?: number
  /** Name of the key that signs the NOTIFY. */
  readonly key?: Fqdn
}

export interface ZonePolicy {
  /** Names of keys whose updates are taken. */
  readonly updateKeys?: readonly Fqdn[]
  /** Further objection to one record of an update by that key, for instance names it may not touch. */
  readonly mayUpdate?: (key: Fqdn, record: Resource) => boolean
  /** Names of keys that may read the whole zone. */
  readonly transferKeys?: readonly Fqdn[]
  /** Told by NOTIFY (RFC 1996) after each change. */
  readonly secondaries?: readonly Secondary[]
}
