/**
 * Who decides the TLS of a host that several objects declare: the highest-ranking kind (Ingress, HTTPProxy, Gateway API), of one
 * kind the one that was added first, which is the oldest. If one of them asks for client certificates, nothing of the host is
 * served without them, on any port; but for what that one itself serves on a port where it does not ask.
 */
import type { ClientValidation, Origin, TcpForwarding, TlsTermination } from '../ir/model.ts'
import type { TlsConflict } from './draft.ts'
import { isSameValidation } from '../ir/tls.ts'
import { describeOrigin, rankOf } from './origin.ts'

export interface TlsClaim {
  readonly tls: TlsTermination
  readonly origin: Origin
  readonly group?: string
  /** The Gateway whose listener has the TLS settings. */
  readonly gateway?: string
}

/**
 * Whose TLS settings are those of a route or claim: of its Gateway, else of its kind, because the routes of a host that are
 * HTTPProxies have one root.
 */
export function claimantOf(origin: Origin, gateway: string | undefined): string {
  return gateway === undefined ? `kind ${rankOf(origin)}` : `Gateway ${gateway}`
}

interface Settled {
  readonly tls?: TlsTermination
  readonly group?: string
  /** The forwarding of the host stays. */
  readonly isForwarded?: boolean
  /** Client certificates are required: who asks for them, and those whose routes need certificates of another authority. */
  readonly clients?: { readonly claimant: string; readonly refused: ReadonlySet<string> }
  readonly conflicts: readonly TlsConflict[]
}

export function settleTls(
  host: string,
  { claims, tcp, tcpOrigin }: { claims: readonly TlsClaim[]; tcp?: TcpForwarding; tcpOrigin?: Origin },
  requiredOfAllPorts: readonly TlsClaim[] = [],
): Settled {
  const best = claims.reduce((a, b) => (rankOf(b.origin) > rankOf(a.origin) ? b : a))
  const tcpRank = tcp === undefined || tcpOrigin === undefined ? -1 : rankOf(tcpOrigin)
  // Connections that are passed on unread are not terminated because of a lower kind.
  if (tcpOrigin !== undefined && tcpRank > rankOf(best.origin))
    return {
      isForwarded: true,
      conflicts: claims.map(({ origin }) => lostTo(host, origin, tcpOrigin, 'passes its TLS connections on')),
    }
  const asking = claims.filter(({ tls }) => tls.clientValidation !== undefined)
  const own = asking.filter(({ tls }) => tls.clientValidation?.isOptional === false)
  // An object may have ports with and without client certificates; another one that asks for them asks on all ports.
  const present = new Set(claims.map(({ origin, gateway }) => claimantOf(origin, gateway)))
  const isOther = ({ origin, gateway }: TlsClaim) => !present.has(claimantOf(origin, gateway))
  const required = own.length > 0 ? own : requiredOfAllPorts.filter(isOther)
  const [validating] = (required.length > 0 ? required : asking).toSorted((a, b) => rankOf(b.origin) - rankOf(a.origin))
  const clientValidation = validating?.tls.clientValidation
  const conflicts: TlsConflict[] = []
  const text = withoutValidation(best.tls)
  for (const each of claims)
    if (each !== best && withoutValidation(each.tls) !== text)
      conflicts.push(lostTo(host, each.origin, best.origin, 'decides its certificate and TLS versions'))
  if (tcpOrigin !== undefined && tcpRank < rankOf(best.origin))
    conflicts.push(lostTo(host, tcpOrigin, best.origin, 'terminates its TLS connections'))
  const refused = new Set<string>()
  for (const { tls, origin, gateway } of required) {
    if (validating === undefined || isSameValidation(tls.clientValidation, clientValidation)) continue
    refused.add(claimantOf(origin, gateway))
    const what = 'asks for client certificates of another authority: routes of this object are not served over TLS'
    conflicts.push(lostTo(host, origin, validating.origin, what))
  }
  // The same object as before unless the validation comes from another one.
  const isItsOwn = isSameValidation(best.tls.clientValidation, clientValidation)
  return {
    tls: isItsOwn ? best.tls : withValidation(best.tls, clientValidation),
    // Connections for the other hosts of the group were accepted without this validation.
    ...(isItsOwn && best.group !== undefined && { group: best.group }),
    ...(tcpRank >= rankOf(best.origin) && { isForwarded: true }),
    ...(required.length > 0 &&
      validating !== undefined && {
        clients: { claimant: claimantOf(validating.origin, validating.gateway), refused },
      }),
    conflicts,
  }
}

function lostTo(host: string, loser: Origin, winner: Origin, what: string): TlsConflict {
  return { loser, message: `${loser.at}: host ${host}: ${describeOrigin(winner)} ${what}` }
}

function withoutValidation({ clientValidation: _clients, ...tls }: TlsTermination): string {
  return JSON.stringify(tls)
}

/** By the certificate and the validation of another object, both immutable: the same object in every build. */
const merged = new WeakMap<TlsTermination, TlsTermination>()

function withValidation(tls: TlsTermination, clientValidation: ClientValidation | undefined): TlsTermination {
  const known = merged.get(tls)
  if (known !== undefined && isSameValidation(known.clientValidation, clientValidation)) return known
  const result = { ...tls, ...(clientValidation !== undefined && { clientValidation }) }
  merged.set(tls, result)
  return result
}
