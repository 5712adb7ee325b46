/**
 * Compares desired RRsets with the authoritative servers by DNS queries: for a plan without provider credentials.
 *
 * Queries return answers, not the zone: a wildcard answers like a record, and only a marker identifies the owner. The
 * result for each desired RRset is `equal`, `differs`, `foreign` (another owner's marker, or a record without one) or `unread`.
 */
import { groupRecords } from '@seamark/dns'
import { askAny, type AuthoritativeClient } from '../../authority/answers.ts'
import type { FindServers, NameServer } from '../../authority/name-servers.ts'
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
  findServers: FindServers,
  client: AuthoritativeClient,
  signal: AbortSignal,
): Promise<Comparison[]> {
  const results: Comparison[] = []
  for (const item of desired) results.push(await compareOne(item, owner, findServers, client, signal))
  return results
}

async function compareOne(
  desired: Desired,
  owner: string,
  findServers: FindServers,
  client: AuthoritativeClient,
  signal: AbortSignal,
): Promise<Comparison> {
  const { set } = desired
  const servers = await findServers(set.name)
  const found = await ask(client, servers, set.name, set.type, signal)
  if ('why' in found) return { desired, answer: 'unread', why: found.why }
  const { present } = found
  if (present === undefined) return { desired, answer: 'absent' }
  const marker = await ask(client, servers, markerName(set.name, set.type), 'TXT', signal)
  if ('why' in marker) return { desired, answer: 'unread', why: marker.why }
  const isOurs = (marker.present?.values ?? []).some((value) => {
    const reading = readMarker(set, value)
    return reading.kind === 'marker' && reading.marker.owner === owner
  })
  if (!isOurs) return { desired, answer: 'foreign', present }
  return {
    desired,
    answer: sameValues(present.values, set.values) && present.ttl === set.ttl ? 'equal' : 'differs',
    present,
  }
}

async function ask(
  client: AuthoritativeClient,
  servers: readonly NameServer[],
  name: string,
  type: string,
  signal: AbortSignal,
): Promise<{ readonly present: RRset | undefined } | { readonly why: string }> {
  const answer = await askAny(client, { name, types: [type] }, servers, signal)
  if ('why' in answer) return answer
  const found = groupRecords(answer.answers).find((set) => set.name === name && set.type === type)
  return { present: found === undefined ? undefined : fromDns(found) }
}
