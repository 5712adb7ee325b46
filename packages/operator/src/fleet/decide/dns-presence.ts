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

/** What the servers of all hosts answer, sorted. Undefined: not every one answered, so that it is not known. */
export function answeredValues(answers: readonly HostAnswers[]): string[] | undefined {
  const values = answers.flatMap(({ servers }) => servers.map((server) => server.values))
  if (answers.length === 0 || answers.some(({ servers }) => servers.length === 0) || values.includes(undefined))
    return undefined
  return [...new Set(values.flatMap((each) => [...(each ?? [])]))].sort()
}

/** A leaf that balance published. */
export interface PublishedLeaf {
  readonly addresses: readonly LeafAddress[]
  /** With weight 0 it is answered only where nothing else is. */
  readonly hasWeight: boolean
}

/**
 * How the answers differ from what balance published, in words: an address of no leaf that is published, or a published leaf
 * that a server does not answer. Undefined: they do not, or it is not known.
 */
export function answerFault(published: readonly PublishedLeaf[], answers: readonly HostAnswers[]): string | undefined {
  const addresses = published.flatMap((leaf) => leaf.addresses)
  // What a name resolves to is not known here.
  if (addresses.some(({ type }) => type !== 'IPAddress')) return undefined
  const wanted = new Set(addresses.map(({ value }) => value))
  for (const { host, servers } of answers)
    for (const { server, values } of servers) {
      if (values === undefined) continue
      const hasOthers = [...values].some((value) => !wanted.has(value))
      const isShort = published.some((leaf) => leaf.hasWeight && !leaf.addresses.some(({ value }) => values.has(value)))
      if (!hasOthers && !isShort) continue
      return `${server} answers ${textOf(values)} for ${host} instead of ${textOf(wanted)}`
    }
  return undefined
}

function textOf(values: ReadonlySet<string>): string {
  return [...values].sort().join(', ') || 'nothing'
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
