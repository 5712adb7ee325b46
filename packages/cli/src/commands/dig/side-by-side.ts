/**
 * `seamark dig NAME` without a server: the answer of the system's resolver beside those of the zone's authoritative servers.
 * The authoritative servers are found through the resolver.
 */
import { readFileSync } from 'node:fs'
import {
  type Comparison,
  type DnsClient,
  DnsError,
  FLAG,
  type Fqdn,
  fqdn,
  groupRecords,
  parentOf,
  rcodeName,
  type Reply,
  type ServerAddress,
  serverText,
} from '@seamark/dns'
import { CommandError } from '../../command.ts'
import type { DigArguments } from './arguments.ts'

/** Name servers of a resolv.conf, in its order. */
function parseResolvConf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => /^\s*nameserver\s+([^\s#;%]+)/.exec(line)?.[1])
    .filter((address) => address !== undefined)
}

function systemResolver(env: NodeJS.ProcessEnv, port: number): ServerAddress {
  const file = env['SEAMARK_RESOLV_CONF'] ?? '/etc/resolv.conf'
  let text = ''
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    throw new CommandError(`cannot read ${file}; name a server with @HOST`, 1, { cause })
  }
  const [address] = parseResolvConf(text)
  if (address === undefined) throw new CommandError(`${file} names no server; name one with @HOST`)
  return { address, port }
}

interface NamedServer extends ServerAddress {
  readonly name: Fqdn
}

/** The zone that contains the name and the addresses of its servers, according to the resolver. */
async function findAuthoritative(
  client: DnsClient,
  resolver: ServerAddress,
  name: Fqdn,
  port: number,
): Promise<{ zone: Fqdn; servers: NamedServer[] } | undefined> {
  for (let zone: Fqdn | undefined = name; zone !== undefined; zone = parentOf(zone)) {
    const reply: Reply = await client.query({ server: resolver, name: zone, type: 'NS', isRecursive: true })
    const names = groupRecords(reply.message.answers).find((set) => set.name === zone && set.type === 'NS')?.values
    if (names === undefined) continue
    const found = await Promise.all(
      names.map(async (text) => {
        const replies = await Promise.allSettled(
          ['A', 'AAAA'].map(async (type) => client.query({ server: resolver, name: text, type, isRecursive: true })),
        )
        const sets = replies.flatMap((result) =>
          result.status === 'fulfilled' ? groupRecords(result.value.message.answers) : [],
        )
        const addresses = sets.filter((set) => set.type === 'A' || set.type === 'AAAA').flatMap((set) => set.values)
        return addresses.map((address) => ({ name: fqdn(text), address, port }))
      }),
    )
    return { zone, servers: found.flat() }
  }
  return undefined
}

interface Row {
  readonly who: string
  readonly status: string
  readonly answer: string[]
}

function toRow(who: string, reply: Reply | DnsError): Row {
  if (reply instanceof DnsError) return { who, status: reply.code, answer: [reply.message] }
  const { message } = reply
  const sets = groupRecords(message.answers)
  const answer = sets.flatMap((set) => set.values.map((value) => `${set.ttl} ${set.type} ${value}`))
  return {
    who,
    status: rcodeName(message.rcode) + ((message.flags & FLAG.AA) === 0 ? '' : ' aa'),
    answer: answer.toSorted(),
  }
}

function table(rows: readonly Row[]): string[] {
  const lines = [{ who: 'SERVER', status: 'STATUS', answer: ['ANSWER'] }, ...rows].flatMap(({ who, status, answer }) =>
    (answer.length === 0 ? ['-'] : answer).map((text, i) => [i === 0 ? who : '', i === 0 ? status : '', text] as const),
  )
  const width = (column: 0 | 1) => Math.max(...lines.map((line) => line[column].length))
  return lines.map((line) => `${line[0].padEnd(width(0))}  ${line[1].padEnd(width(1))}  ${line[2]}`.trimEnd())
}

export interface SideBySide {
  readonly lines: string[]
  readonly isAgreed: boolean
}

export async function sideBySide(client: DnsClient, args: DigArguments, env: NodeJS.ProcessEnv): Promise<SideBySide> {
  const resolver = systemResolver(env, args.port)
  const name = fqdn(args.name)
  const question = { name, type: args.type, class: args.class, transport: args.transport, isDo: args.isDo }
  const authoritative = await findAuthoritative(client, resolver, name, args.port)
  const servers = authoritative?.servers ?? []
  const [open, own]: [Comparison, Comparison] = await Promise.all([
    client.compare([resolver], { ...question, isRecursive: true }),
    client.compare(servers, question),
  ])
  const rows = [
    toRow(`${serverText(resolver)} (resolver)`, open.replies[0]!.reply),
    ...own.replies.map(({ reply }, i) => toRow(`${servers[i]!.name} (${serverText(servers[i]!)})`, reply)),
  ]
  const key = (row: Row) =>
    [row.status.split(' ')[0], ...row.answer.map((text) => text.replace(/^\d+ /, ''))].join('\n')
  const isAgreed = rows.every((row) => key(row) === key(rows[0]!))
  const where = authoritative === undefined ? 'no zone was found through the resolver' : `zone ${authoritative.zone}`
  const verdict =
    servers.length === 0
      ? `${where}: only the resolver was asked`
      : `${where}: ${isAgreed ? 'all agree' : 'the answers differ'}`
  return { lines: [...table(rows), `;; ${verdict}`], isAgreed }
}
