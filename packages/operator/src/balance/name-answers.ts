/**
 * The addresses that a zone answers for the DNS names of load balancers: what clients get once no cache has the name. The
 * resolver of this machine does not decide it, which may know nothing of the zone.
 *
 * Flow: records that were read at a server of the zone are its answer; a service with an interface of its own is asked by DNS, at
 * the servers of the NS records; where those cannot be found or asked, what the service says it has counts.
 */
import { isIP } from 'node:net'
import type { Clock } from '@seamark/kube'
import { ADDRESS_TYPES, addressValues, askAny, type AuthoritativeClient } from '../authority/answers.ts'
import type { FindServers } from '../authority/name-servers.ts'
import { canonicalName, isInvalid } from '../rrset/rrset.ts'
import { createNameLookup, type NameLookup } from './name-lookup.ts'
import type { PublishedFact } from './write/record-publisher.ts'

export interface NameAnswersDeps {
  readonly clock: Clock
  readonly client: AuthoritativeClient
  readonly findServers: FindServers
  /** Addresses of a name outside the zone, to which a CNAME leads. */
  readonly resolve: (name: string) => Promise<readonly string[]>
  readonly onChange: (owners: readonly string[]) => void
}

export function createNameAnswers({ clock, client, findServers, resolve, onChange }: NameAnswersDeps): NameLookup {
  return createNameLookup({
    clock,
    onChange,
    isAbsenceKnown: true,
    async resolve(name) {
      const servers = await findServers(name)
      const answer = await askAny(client, { name, types: ADDRESS_TYPES }, servers, new AbortController().signal)
      // Unknown: a server that does not answer says nothing about its zone.
      if ('why' in answer) throw new Error(answer.why)
      const values = addressValues(answer.answers)
      const addresses = values.filter((value) => isIP(value) !== 0)
      const [host] = values
      return addresses.length > 0 || host === undefined ? addresses : resolve(host)
    },
  })
}

/** Undefined: unknown. Pure. */
export function nameAddresses(
  { published, readFrom }: PublishedFact,
  /** By DNS at the servers of the zone; undefined: they were not asked, or did not answer. */
  answered: readonly string[] | undefined,
  /** Of a host name that a CNAME leads to. */
  addressesOf: (name: string) => readonly string[] | undefined,
): readonly string[] | undefined {
  if (readFrom !== 'server' && answered !== undefined) return answered
  if (readFrom === undefined || readFrom === 'object') return undefined
  const [alias] = (published ?? []).filter(({ type }) => type === 'CNAME')
  if (alias === undefined) return published?.flatMap(({ values }) => values).sort()
  const host = canonicalName(alias.values[0] ?? '')
  return isInvalid(host) ? [] : addressesOf(host)
}

/** Host names that CNAMEs among the published records lead to. */
export function aliasesIn({ published = [] }: PublishedFact): string[] {
  return published.flatMap(({ type, values }) => (type === 'CNAME' ? values : []))
}
