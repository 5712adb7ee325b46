/**
 * Asks every authoritative server of a host for its addresses: a migration goes on only when they show the last change.
 *
 * Guarantees: caches of resolvers are not asked; a server whose addresses are all silent, or answer without authority for the
 * zone, is `undefined`, not empty.
 */
import { ADDRESS_TYPES, addressValues, askServer, type AuthoritativeClient } from '../../authority/answers.ts'
import type { FindServers } from '../../authority/name-servers.ts'
import type { HostAnswers } from '../decide/dns-presence.ts'

export interface AuthoritativeDnsDeps {
  readonly client: AuthoritativeClient
  readonly findServers: FindServers
}

export class AuthoritativeDns {
  readonly #deps: AuthoritativeDnsDeps

  constructor(deps: AuthoritativeDnsDeps) {
    this.#deps = deps
  }

  async ask(hosts: readonly string[], signal: AbortSignal): Promise<HostAnswers[]> {
    return Promise.all(hosts.map(async (host) => this.#askHost(host, signal)))
  }

  async #askHost(host: string, signal: AbortSignal): Promise<HostAnswers> {
    const { client, findServers } = this.#deps
    const servers = await findServers(host)
    const question = { name: host, types: ADDRESS_TYPES }
    return {
      host,
      servers: await Promise.all(
        servers.map(async (server) => {
          const answer = await askServer(client, question, server, signal)
          return { server: server.name, values: 'why' in answer ? undefined : new Set(addressValues(answer.answers)) }
        }),
      ),
    }
  }
}
