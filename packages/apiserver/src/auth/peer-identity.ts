/** Identity of a connection, from its client certificate. */
import type { TLSSocket } from 'node:tls'
import type { PeerIdentity, UserInfo } from '../exchange/exchange.ts'

const known = new WeakMap<object, { readonly identity: PeerIdentity | undefined }>()

/** Reads the certificate once per connection: an HTTP/2 session exposes its socket through a slow proxy. */
export function identityOf(connection: object, socketOf: () => object): PeerIdentity | undefined {
  let found = known.get(connection)
  if (found === undefined) {
    found = { identity: readIdentity(socketOf()) }
    known.set(connection, found)
  }
  return found.identity
}

function readIdentity(socket: Partial<TLSSocket>): PeerIdentity | undefined {
  const certificate = socket.getPeerCertificate?.(false) as { readonly subject?: Subject } | undefined
  if (certificate?.subject === undefined) return undefined
  return socket.authorized === true ? subjectUser(certificate.subject) : 'unverified'
}

interface Subject {
  readonly CN?: unknown
  readonly O?: unknown
}

/** CN is the name, each O a group. */
function subjectUser({ CN, O }: Subject): UserInfo | 'unverified' {
  return CN === undefined ? 'unverified' : { name: String(CN), groups: [O ?? []].flat().map(String) }
}
