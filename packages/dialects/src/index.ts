/**
 * How the kinds of others declare hosts: pure readers, beneath every capability and the gateway. One rule each for the order of
 * age, the class of an object, addresses of a status, host names and grants.
 */
export { type Aged, ageOf, byAge, compareAge } from './age.ts'
export { type Address, type AddressEntry, type Addresses, parseAddress, readAddress, sortAddresses } from './address.ts'
export { findGrantFault, type Grants, GrantsConfig, type NameRule, nameRule, processGrants } from './grants.ts'
export { findHostFault, isObjectName, normalizeHost } from './host-name.ts'
export { CLASS_ANNOTATIONS, classOf } from './ingress-class.ts'
