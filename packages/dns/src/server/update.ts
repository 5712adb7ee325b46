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
  /** Called with the zone after a change, before the answer goes out. */
  swap(zone: Zone): void
}

/** The rcode of an update by `key`, undefined for an unsigned one. */
export function handleUpdate(target: UpdateTarget, bytes: Uint8Array, key: TsigKey | undefined): number {
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
  try {
    const result = applyUpdate(zone, message)
    if (result.zone !== zone) target.swap(result.zone)
    return result.rcode
  } catch (error) {
    // RRsets that conflict, or that fit no message: the zone is unchanged.
    if (error instanceof DnsError)
      return error.code === 'BAD_ZONE' || error.code === 'TOO_LARGE' ? RCODE.REFUSED : RCODE.FORMERR
    throw error
  }
}
