/**
 * Asks the authoritative servers of a name for its records: what the zone has, without the caches of resolvers.
 *
 * Guarantees: an answer without authority (a referral, a cache, a server that does not serve the zone) is no answer, so "no such
 * record" is never concluded from it. Of the addresses of a server the first that answers is used.
 */
import { decodePolicy, type DnsClient, DnsError, groupRecords, type Message, POLICY_TYPE } from '@seamark/dns'
import { isAuthoritative, type NameServer } from './name-servers.ts'

export type Answers = Message['answers']
/** Of a client for DNS what is needed here. */
export interface AuthoritativeClient {
  query(question: Parameters<DnsClient['query']>[0]): Promise<{ readonly message: Message }>
}

interface Question {
  readonly name: string
  readonly types: readonly string[]
  /** @default 2000 */
  readonly deadlineMs?: number
}

/** A set with an answer policy is read whole by its policy: a query for its addresses returns a part of it. */
export const ADDRESS_TYPES = ['A', 'AAAA', `TYPE${POLICY_TYPE}`] as const
const DEADLINE_MS = 2_000

/** `why`: no address of the server gave an answer with authority. */
export async function askServer(
  client: AuthoritativeClient,
  { name, types, deadlineMs = DEADLINE_MS }: Question,
  { name: server, addresses }: NameServer,
  signal: AbortSignal,
): Promise<{ readonly answers: Answers } | { readonly why: string }> {
  let why = `${server} has no known address`
  for (const address of addresses) {
    try {
      const replies = await Promise.all(
        types.map(async (type) => client.query({ server: address, name, type, deadlineMs, signal })),
      )
      const other = replies.find(({ message }) => !isAuthoritative(message))
      if (other === undefined) return { answers: replies.flatMap(({ message }) => [...message.answers]) }
      why = `${server} answers without authority for ${name} (rcode ${other.message.rcode})`
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof DnsError)) throw error
      why = error.message
    }
  }
  return { why }
}

/** The first of the servers that answers. */
export async function askAny(
  client: AuthoritativeClient,
  question: Question,
  servers: readonly NameServer[],
  signal: AbortSignal,
): Promise<{ readonly answers: Answers } | { readonly why: string }> {
  let last: { readonly why: string } = { why: 'no authoritative server is known' }
  for (const server of servers) {
    const answer = await askServer(client, question, server, signal)
    if ('answers' in answer) return answer
    last = answer
  }
  return last
}

/** Addresses, and names of CNAMEs without the trailing dot, from the answers for `ADDRESS_TYPES`. */
export function addressValues(answers: Answers): string[] {
  const policies = answers.flatMap(({ type, data }) => (type === POLICY_TYPE ? [decodePolicy(data)] : []))
  const plain = groupRecords(answers.filter(({ type }) => type !== POLICY_TYPE))
  return [
    ...plain.flatMap(({ type, values }) =>
      values.map((value) => (type === 'CNAME' ? value.replace(/\.$/, '') : value)),
    ),
    ...policies.flatMap((policy) => policy?.entries.map(({ value }) => value) ?? []),
  ]
}
