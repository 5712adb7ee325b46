/**
 * What the answers of authoritative servers show about the addresses of a leaf. Pure.
 *
 * A server that did not answer makes the result unknown: a withdrawn leaf counts as absent only when every server of every
 * host was asked and none has one of its addresses.
 */
import type { LeafAddress } from '../../api/leaf-ingress.ts'

/** One host, as its authoritative servers have it. */
export interface HostAnswers {
  readonly host: string
  readonly servers: readonly {
    readonly server: string
    /** Addresses, and names of CNAMEs without the trailing dot. Undefined: it did not answer. */
    readonly values: ReadonlySet<string> | undefined
  }[]
}

export type Presence = 'present' | 'absent' | 'unknown'

/** Whether any server still answers the leaf. */
export function presenceOf(addresses: readonly LeafAddress[], answers: readonly HostAnswers[]): Presence {
  const values = addresses.map(({ value }) => value)
  const servers = answers.flatMap((host) => host.servers)
  if (servers.some((server) => values.some((value) => server.values?.has(value) === true))) return 'present'
  const isComplete = answers.every((host) => host.servers.length > 0)
  return isComplete && servers.every((server) => server.values !== undefined) ? 'absent' : 'unknown'
}

/** Whether every server of every host answers the leaf. */
export function isAnsweredEverywhere(addresses: readonly LeafAddress[], answers: readonly HostAnswers[]): boolean {
  return (
    answers.length > 0 &&
    answers.every(
      ({ servers }) =>
        servers.length > 0 && servers.every(({ values }) => addresses.some(({ value }) => values?.has(value) === true)),
    )
  )
}

/** Servers that did not answer, for a message. */
export function silentServers(answers: readonly HostAnswers[]): string[] {
  const silent = answers.flatMap(({ host, servers }) =>
    servers.length === 0
      ? [`no server is known for ${host}`]
      : servers.flatMap(({ server, values }) => (values === undefined ? [server] : [])),
  )
  return [...new Set(silent)].sort()
}
