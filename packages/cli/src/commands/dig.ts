/** `seamark dig [@HOST] [-p PORT] NAME [TYPE]`: dig's syntax, for machines without dig. */
import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import {
  createDnsClient,
  type DnsClient,
  DnsError,
  fqdn,
  OPTION,
  parseKeyFile,
  recordText,
  type ServerAddress,
  type TsigKey,
} from '@seamark/dns'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../command.ts'
import { type DigArguments, parseArguments } from '../dig/arguments.ts'
import { replyText } from '../dig/output.ts'
import { sideBySide } from '../dig/side-by-side.ts'
import { VERSION } from '../version.ts'

async function findServer(host: string, port: number): Promise<ServerAddress> {
  if (isIP(host) !== 0) return { address: host, port }
  try {
    return { address: (await lookup(host)).address, port }
  } catch (cause) {
    throw new CommandError(`cannot find the server '${host}'`, EXIT.error, { cause })
  }
}

const findKey = (wanted: DigArguments): TsigKey | undefined =>
  wanted.keyFile === undefined ? wanted.key : parseKeyFile(readFileSync(wanted.keyFile, 'utf8'), wanted.keyFile)[0]

async function ask(client: DnsClient, wanted: DigArguments, host: string, io: Io): Promise<void> {
  const server = await findServer(host, wanted.port)
  const key = findKey(wanted)
  const common = { server, signal: io.signal, ...(key === undefined ? {} : { key }) }
  if (!wanted.isShort && wanted.sections.has('cmd'))
    io.stdout.write(`; <<>> seamark dig ${VERSION} <<>> @${host} ${wanted.name} ${wanted.type}\n`)
  if (wanted.type === 'AXFR') {
    let last = ''
    for await (const record of client.transfer({ ...common, zone: fqdn(wanted.name), idleMs: wanted.timeoutMs })) {
      last ||= recordText(record)
      io.stdout.write(`${recordText(record)}\n`)
    }
    io.stdout.write(`${last}\n`)
    return
  }
  const reply = await client.query({
    ...common,
    name: wanted.name,
    type: wanted.type,
    class: wanted.class,
    transport: wanted.transport,
    isRecursive: wanted.isRecursive,
    isDo: wanted.isDo,
    hasEdns: wanted.hasEdns,
    isTruncationKept: wanted.isTruncationKept,
    deadlineMs: wanted.timeoutMs * wanted.tries,
    ...(wanted.bufferSize === undefined ? {} : { ednsSize: wanted.bufferSize }),
    ...(wanted.subnet === undefined ? {} : { subnet: wanted.subnet }),
    options: wanted.hasNsid ? [{ code: OPTION.NSID, data: new Uint8Array(0) }] : [],
  })
  for (const line of replyText(reply, wanted, new Date())) io.stdout.write(`${line}\n`)
}

async function run(words: string[], io: Io): Promise<void> {
  const wanted = parseArguments(words)
  // The case that people typed is the case they see; forgers are no concern of a command that only shows.
  const client = createDnsClient({ timeoutMs: wanted.timeoutMs, tries: wanted.tries, isCaseRandom: false })
  try {
    if (wanted.server !== undefined) {
      await ask(client, wanted, wanted.server, io)
      return
    }
    const { lines, isAgreed } = await sideBySide(client, wanted, io.env)
    for (const line of lines) io.stdout.write(`${line}\n`)
    io.exit(isAgreed ? EXIT.ok : EXIT.changes)
  } catch (error) {
    if (!(error instanceof DnsError)) throw error
    const code = error.code === 'TIMEOUT' ? EXIT.timeout : error.code.startsWith('BAD_') ? EXIT.usage : EXIT.error
    throw new CommandError(error.message, code, { cause: error })
  } finally {
    await client.close()
  }
}

const HELP = `
  @HOST             ask this server; without it the system's resolver and the zone's own servers are asked, side by side
  -p PORT  -t TYPE  -c CLASS  -q NAME  -x ADDRESS (reverse)  -k KEYFILE  -y [ALGORITHM:]NAME:SECRET
  +short  +[no]tcp  +[no]recurse  +[no]edns  +[no]dnssec  +nsid  +ignore  +bufsize=N  +subnet=A/P  +time=S  +tries=N
  +[no]all +[no]cmd +[no]comments +[no]question +[no]answer +[no]authority +[no]additional +[no]stats
  TYPE AXFR transfers a zone. Exit codes: 0 fine, 2 the servers differ, 4 no answer.`

export function build(io: Io): Command {
  return new Command()
    .description('ask DNS servers, in the syntax of dig')
    .usage('[@HOST] [-p PORT] NAME [TYPE] [+FLAG…]')
    .argument('[words...]', 'server, name, type and flags in any order')
    .addHelpText('after', HELP)
    .allowUnknownOption()
    .action(async (words: string[]) => run(words, io))
}
