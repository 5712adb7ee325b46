/**
 * Who may ask under which name: the Host of a request is one that this server is reached by, and its Origin, if it has one, is the
 * same. Else a page of another host could read this one through a name that resolves to it (DNS rebinding). Pure.
 */
import { isIP } from 'node:net'
import { addressOctets, isLoopback } from '@seamark/dns'

export interface Reach {
  readonly isLoopback: boolean
  readonly isAllowed: (host: string | undefined) => boolean
}

/** `host`: of the address that is listened on; empty: every one. `names`: by which others reach it. */
export function reachOf(host: string, names: readonly string[]): Reach {
  const isLocal = isLoopbackHost(host)
  const known = new Set(names.map((name) => name.toLowerCase()))
  return {
    isLoopback: isLocal,
    isAllowed: (text) => {
      const name = hostOf(text)
      if (name === undefined) return false
      if (name === 'localhost' || known.has(name)) return true
      // A name may resolve to any address, and an address is only itself.
      return isIP(name) !== 0 && (!isLocal || isLoopbackHost(name))
    },
  }
}

function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && isLoopback(addressOctets(host)))
}

/** Without port and brackets, lower case; undefined: absent, or not HOST or HOST:PORT. */
function hostOf(text: string | undefined): string | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::\d{1,5})?$/.exec(text ?? '')
  return (match?.[1] ?? match?.[2])?.toLowerCase()
}

/** Browsers send it with requests of scripts to another origin. */
export function isSameOrigin(origin: string | undefined, scheme: 'http' | 'https', host: string | undefined): boolean {
  return origin === undefined || origin.toLowerCase() === `${scheme}://${(host ?? '').toLowerCase()}`
}
