/**
 * Compares desired RRsets with the authoritative servers by DNS queries: for a plan without provider credentials.
 *
 * Queries return answers, not the zone: a wildcard answers like a record, and only a marker identifies the owner. The
 * result for each desired RRset is `equal`, `differs`, `foreign` (another owner's marker, or a record without one) or `unread`.
 */
import type { DnsClient, ServerAddress } from '@seamark/dns'
import { DnsError, groupRecords, RCODE } from '@seamark/dns'
import { markerName, readMarker } from '../../rrset/marker.ts'
import type { Desired } from '../plan/plan.ts'
import { fromDns, type RRset, sameValues } from '../../rrset/rrset.ts'

export type ServerAnswer = 'equal' | 'differs' | 'foreign' | 'absent' | 'unread'

export interface Comparison {
  readonly desired: Desired
  readonly answer: ServerAnswer
  readonly present?: RRset
  readonly why?: string
}

export async function compareWithServers(
  desired: readonly Desired[],
  owner: string,
  servers: (name: string) => Promise<readonly ServerAddress[]>,
  client: DnsClient,
  signal: AbortSignal,
): Promise<Comparison[]> {
  const results: Comparison[] = []
  for (const item of desired) results.push(await compareOne(item, owner, servers, client, signal))
  return results
}

async function compareOne(
  desired: Desired,
  owner: string,
  servers: (name: string) => Promise<readonly ServerAddress[]>,
  client: DnsClient,
  signal: AbortSignal,
): Promise<Comparison> {
  const { set } = desired
  try {
    const [server] = await servers(set.name)
    if (server === undefined) return { desired, answer: 'unread', why: 'no authoritative server is known' }
    const present = await ask(client, server, set.name, set.type, signal)
    if (present === undefined) return { desired, answer: 'absent' }
    const marker = await ask(client, server, markerName(set.name, set.type), 'TXT', signal)
    const isOurs = (marker?.values ?? []).some((value) => {
      const reading = readMarker(set, value)
      return reading.kind === 'marker' && reading.marker.owner === owner
    })
    if (!isOurs) return { desired, answer: 'foreign', present }
    return {
      desired,
      answer: sameValues(present.values, set.values) && present.ttl === set.ttl ? 'equal' : 'differs',
      present,
    }
  } catch (error) {
    if (!(error instanceof DnsError)) throw error
    return { desired, answer: 'unread', why: error.message }
  }
}

async function ask(
  client: DnsClient,
  server: ServerAddress,
  name: string,
  type: string,
  signal: AbortSignal,
): Promise<RRset | undefined> {
  const { message } = await client.query({ server, name, type, signal })
  if (message.rcode === RCODE.NXDOMAIN) return undefined
  if (message.rcode !== RCODE.NOERROR)
    throw new DnsError('RCODE', `the server says rcode ${message.rcode} for ${name} ${type}`)
  const found = groupRecords(message.answers).find((set) => set.name === name && set.type === type)
  return found === undefined ? undefined : fromDns(found)
}
