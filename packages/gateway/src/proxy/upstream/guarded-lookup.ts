/**
 * Name resolution for backends that are DNS names. Every address that a name resolves to is checked, and the connection is
 * made to a checked one: a tenant must not reach the node or cloud metadata through a name of its own.
 */
import { lookup as systemLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { AddressGuard } from '@seamark/kube'

export type Resolver = typeof systemLookup

export function guardedLookup(isRefused: AddressGuard, resolve: Resolver = systemLookup): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, '')
      const allowed = found.filter(({ address }) => isRefused(address) === undefined)
      const [first] = allowed
      if (first === undefined) {
        const reasons = found.map(({ address }) => isRefused(address)).join('; ')
        return callback(new Error(`${hostname} must not be connected to: ${reasons || 'it has no address'}`), '')
      }
      if (options.all === true) callback(null, allowed)
      else callback(null, first.address, first.family)
    })
  }
}
