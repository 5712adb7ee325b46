/** UPDATE on the server: permission (RFC 2136 §3.3), then zone/update.ts on the zone, then the swap. */
import { CLASS, RCODE } from '../wire/codes.ts'
import { DnsError } from '../error.ts'
import { decodeMessage } from '../wire/message.ts'
import { type Fqdn, fqdn } from '../wire/name.ts'
import type { TsigKey } from '../wire/tsig.ts'
import { zoneSection } from '../wire/update-message.ts'
import { applyUpdate } from '../zone/update.ts'
import type { Zone } from '../zone/zone-table.ts'
import type { ZonePolicy } from './policy.ts'

export interface UpdateTarget {
  findZone(origin: Fqdn): Zone | undefined
  policyOf(origin: Fqdn): ZonePolicy
  /**
   * Replaces the zone by what `change` makes of it; the same object: nothing changed. With a promise the change is in
   * effect, and durable, when it resolves.
   */
  commit(origin: Fqdn, change: (zone: Zone, serial?: number) => Zone): Promise<unknown> | void
  readonly onError: (error: unknown) => void
}

/** The rcode of an update by `key`, undefined for an unsigned one. */
export function handleUpdate(
  target: UpdateTarget,
  bytes: Uint8Array,
  key: TsigKey | undefined,
): number | Promise<number> {
  const message = decodeMessage(bytes)
  if (message instanceof DnsError) return RCODE.FORMERR
  const section = zoneSection(message)
  if (section === undefined) return RCODE.FORMERR
  const zone = section.class === CLASS.IN ? target.findZone(fqdn(section.name)) : undefined
  if (zone === undefined) return RCODE.NOTAUTH
  const policy = target.policyOf(zone.origin)
  if (key === undefined || policy.updateKeys?.includes(key.name) !== true) return RCODE.REFUSED
  const { mayUpdate } = policy
  if (mayUpdate !== undefined && !message.authorities.every((record) => mayUpdate(key.name, record)))
    return RCODE.REFUSED
  let rcode: number = RCODE.NOERROR
  const change = (current: Zone, serial?: number): Zone => {
    const result = applyUpdate(current, message, serial)
    rcode = result.rcode
    return result.zone
  }
  try {
    const committed = target.commit(zone.origin, change)
    if (committed === undefined) return rcode
    return committed.then(
      () => rcode,
      (error: unknown) => rcodeOf(error, target.onError),
    )
  } catch (error) {
    return rcodeOf(error, target.onError)
  }
}

/** The zone is unchanged. */
function rcodeOf(error: unknown, onError: (error: unknown) => void): number {
  if (error instanceof DnsError) {
    // RRsets that conflict, or that fit no message.
    if (error.code === 'BAD_ZONE' || error.code === 'TOO_LARGE') return RCODE.REFUSED
    if (!error.code.startsWith('STORE_')) return RCODE.FORMERR
  }
  onError(error)
  return RCODE.SERVFAIL
}
