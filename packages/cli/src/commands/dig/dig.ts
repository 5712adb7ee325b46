/** `seamark dig [@HOST] [-p PORT] NAME [TYPE]`: dig's syntax, for machines without dig. */
import { randomBytes } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import {
  createDnsClient,
  type DnsClient,
  FLAG,
  fqdn,
  OPTION,
  parseKeyFile,
  type ServerAddress,
  type TsigKey,
} from '@seamark/dns'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { type DigArguments, parseArguments } from './arguments.ts'
import { recordLine } from './columns.ts'
import { greeting, replyText, statistics } from './output.ts'
import { sideBySide } from './side-by-side.ts'
import { VERSION } from '../../version.ts'

async function findServer(host: string, port: number): Promise<ServerAddress> {
  if (isIP(host) !== 0) return { address: host, port }
  try {
    return { address: (await lookup(host)).address, port }
  } catch (cause) {
    throw new CommandError(
      `the server name '${host}' cannot be resolved: ${cause instanceof Error ? cause.message : String(cause)}`,
      EXIT.error,
      { cause },
    )
  }
}

interface Call {
  readonly server: ServerAddress
  readonly signal: AbortSignal
  readonly key?: TsigKey
}

const findKey = (args: DigArguments): TsigKey | undefined =>
  args.keyFile === undefined ? args.key : parseKeyFile(readFileSync(args.keyFile, 'utf8'), args.keyFile)[0]

async function transfer(client: DnsClient, args: DigArguments, call: Call, print: (line: string) => void) {
  const startedAt = performance.now()
  let soa = ''
  let records = 1
  for await (const record of client.transfer({ ...call, zone: fqdn(args.name), idleMs: args.timeoutMs })) {
    const line = recordLine(record, args)
    soa ||= line
    records++
    print(line)
  }
  print(soa)
  if (!args.sections.has('stats')) return
  const durationMs = performance.now() - startedAt
  for (const line of statistics({ server: call.server, durationMs, transport: 'tcp' }, new Date())) print(line)
  print(`;; XFR size: ${records} records\n`)
}

async function ask(client: DnsClient, args: DigArguments, host: string, words: string[], io: Io): Promise<void> {
  const print = (line: string) => io.stdout.write(`${line}\n`)
  const server = await findServer(host, args.port)
  const key = findKey(args)
  const call = { server, signal: io.signal, ...(key !== undefined && { key }) }
  const greet = (): void => {
    if (!args.isShort && args.sections.has('cmd')) for (const line of greeting(VERSION, words)) print(line)
  }
  if (args.type === 'AXFR') {
    greet()
    await transfer(client, args, call, print)
    return
  }
  const cookie = args.hasCookie ? randomBytes(8) : undefined
  const asked = client.query({
    ...call,
    name: args.name,
    type: args.type,
    class: args.class,
    transport: args.transport,
    isRecursive: args.isRecursive,
    isDo: args.isDo,
    hasEdns: args.hasEdns,
    isTruncationKept: args.isTruncationKept,
    deadlineMs: args.timeoutMs * args.tries,
    flags: FLAG.AD,
    ...(args.bufferSize !== undefined && { ednsSize: args.bufferSize }),
    ...(args.subnet !== undefined && { subnet: args.subnet }),
    options: [
      ...(args.hasNsid ? [{ code: OPTION.NSID, data: new Uint8Array(0) }] : []),
      ...(cookie === undefined ? [] : [{ code: OPTION.COOKIE, data: cookie }]),
    ],
  })
  const reply = await asked.catch((error: unknown) => {
    greet()
    throw error
  })
  const isAskedAgain = args.transport === 'udp' && reply.transport === 'tcp'
  if (isAskedAgain && !args.isShort && args.sections.has('comments')) print(';; Truncated, retrying in TCP mode.')
  greet()
  const shown = { args, when: new Date(), ...(cookie !== undefined && { cookie }) }
  for (const line of replyText(reply, shown)) print(line)
}

async function run(words: string[], io: Io): Promise<void> {
  const args = parseArguments(words)
  // Random case (0x20) protects against forged answers; here the output must have the case that was typed.
  const client = createDnsClient({ timeoutMs: args.timeoutMs, tries: args.tries, isCaseRandom: false })
  try {
    if (args.server !== undefined) {
      await ask(client, args, args.server, words, io)
      return
    }
    const { lines, isAgreed } = await sideBySide(client, args, io.env)
    for (const line of lines) io.stdout.write(`${line}\n`)
    io.exit(isAgreed ? EXIT.ok : EXIT.changes)
  } finally {
    await client.close()
  }
}

const HELP = `
  @HOST             query this server; without it the system's resolver and the zone's own servers are queried, side by side
  -p PORT  -t TYPE  -c CLASS  -q NAME  -x ADDRESS (reverse)  -k KEYFILE  -y [ALGORITHM:]NAME:SECRET
  +short  +[no]tcp  +[no]recurse  +[no]edns  +[no]dnssec  +[no]cookie  +nsid  +ignore  +bufsize=N  +subnet=A/P  +time=S  +tries=N
  +[no]all +[no]cmd +[no]comments +[no]question +[no]answer +[no]authority +[no]additional +[no]stats
  +[no]ttlid +[no]class +[no]split
  TYPE AXFR transfers a zone. Exit codes: 0 fine, 2 the servers differ, 4 no answer.`

export function build(io: Io): Command {
  return new Command()
    .description('query DNS servers, in the syntax of dig')
    .usage('[@HOST] [-p PORT] NAME [TYPE] [+FLAG…]')
    .argument('[words...]', 'server, name, type and flags in any order')
    .addHelpText('after', HELP)
    .allowUnknownOption()
    .action(async (words: string[]) => run(words, io))
}
