/** Access policy of a zone: the keys that may update and transfer it, and the secondaries that get NOTIFY. */
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
  /** Names of keys whose updates are accepted. */
  readonly updateKeys?: readonly Fqdn[]
  /** Further restriction: may this key send this record of an update? For instance, limits a key to some names. */
  readonly mayUpdate?: (key: Fqdn, record: Resource) => boolean
  /** Names of keys that may transfer the zone. None: no transfer. */
  readonly transferKeys?: readonly Fqdn[]
  /** Secondaries that get NOTIFY (RFC 1996) after each change; a function where their addresses may change. */
  readonly secondaries?: readonly Secondary[] | (() => Promise<readonly Secondary[]>)
}
