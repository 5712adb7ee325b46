/**
 * Asks every authoritative server of a host for its addresses: a migration goes on only when they show the last change.
 *
 * Guarantees: caches of resolvers are not asked; a server whose addresses are all silent, or answer without authority for the
 * zone, is `undefined`, not empty. A set
 * with an answer policy is read whole (packages/dns, type 65401), because a query for its addresses returns a part of it.
 */
import { decodePolicy, type DnsClient, DnsError, groupRecords, POLICY_TYPE } from '@seamark/dns'
import type { HostAnswers } from '../decide/dns-presence.ts'
import { type FindServers, isAuthoritative, type NameServer } from './name-servers.ts'

export interface AuthoritativeDnsDeps {
  readonly client: Pick<DnsClient, 'query'>
  readonly findServers: FindServers
}

const TYPES = ['A', 'AAAA', `TYPE${POLICY_TYPE}`] as const
const DEADLINE_MS = 2_000

export class AuthoritativeDns {
  readonly #deps: AuthoritativeDnsDeps

  constructor(deps: AuthoritativeDnsDeps) {
    this.#deps = deps
  }

  async ask(hosts: readonly string[], signal: AbortSignal): Promise<HostAnswers[]> {
    return Promise.all(hosts.map(async (host) => this.#askHost(host, signal)))
  }

  async #askHost(host: string, signal: AbortSignal): Promise<HostAnswers> {
    const servers = await this.#deps.findServers(host)
    return {
      host,
      servers: await Promise.all(
        servers.map(async (server) => ({ server: server.name, values: await this.#askServer(host, server, signal) })),
      ),
    }
  }

  /** The first address that answers is used for the server. */
  async #askServer(
    host: string,
    { addresses }: NameServer,
    signal: AbortSignal,
  ): Promise<ReadonlySet<string> | undefined> {
    for (const server of addresses) {
      try {
        const answers = await Promise.all(
          TYPES.map(async (type) =>
            this.#deps.client.query({ server, name: host, type, deadlineMs: DEADLINE_MS, signal }),
          ),
        )
        if (!answers.every(({ message }) => isAuthoritative(message))) continue
        return new Set(answers.flatMap(({ message }) => valuesOf(message.answers)))
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof DnsError)) throw error
      }
    }
    return undefined
  }
}

type Records = Parameters<typeof groupRecords>[0]

function valuesOf(records: Records): string[] {
  const policies = [...records].flatMap(({ type, data }) => (type === POLICY_TYPE ? [decodePolicy(data)] : []))
  const plain = groupRecords([...records].filter(({ type }) => type !== POLICY_TYPE))
  return [
    ...plain.flatMap(({ type, values }) =>
      values.map((value) => (type === 'CNAME' ? value.replace(/\.$/, '') : value)),
    ),
    ...policies.flatMap((policy) => policy?.entries.map(({ value }) => value) ?? []),
  ]
}
