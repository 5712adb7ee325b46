/**
 * `seamark dns serve --listen A ZONEFILE…`: an authoritative server for zone files. All files are read before the server starts;
 * SIGHUP reads them again, and the zones served stay as they are when one file is invalid.
 */
import { readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import {
  CAN_SHARE_PORT,
  createDnsServer,
  type DnsServer,
  DnsError,
  type Fqdn,
  fqdn,
  isZoneFileError,
  type ListenAddress,
  loadZoneFile,
  parseKeyFile,
  readRegularFile,
  type Secondary,
  serverText,
  type TsigKey,
  type Zone,
} from '@seamark/dns'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'

interface Flags {
  readonly listen: string[]
  readonly key: string[]
  readonly notify: string[]
  readonly rateLimit: string
  readonly limitLoopback: boolean
  readonly workers: string
}

/** `HOST:PORT`, `[::1]:PORT` or a bare host with the default port. */
function parseAddress(text: string, defaultPort: number): ListenAddress {
  const match = /^(?:\[([^\]]+)\]|([^:]*)|([0-9a-fA-F:]*::?[0-9a-fA-F:.]*))(?::(\d{1,5}))?$/.exec(text)
  const port = match?.[4] === undefined ? defaultPort : Number(match[4])
  const address = match?.[1] ?? match?.[2] ?? match?.[3]
  if (address === undefined || port > 65_535) throw new CommandError(`'${text}' is not HOST:PORT`, EXIT.usage)
  return { address: address === '' ? '0.0.0.0' : address === 'localhost' ? '127.0.0.1' : address, port }
}

/** The origin that a file name implies: `example.test.zone`, `db.example.test` and `example.test` are all example.test. */
function originOf(file: string): Fqdn | undefined {
  const name = basename(file)
    .replace(/\.(zone|db|txt)$/, '')
    .replace(/^db\./, '')
  try {
    return fqdn(name)
  } catch (error) {
    if (error instanceof DnsError) return undefined
    throw error
  }
}

function readText(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new CommandError(
      `cannot read ${file}: ${cause instanceof Error ? cause.message : String(cause)}`,
      EXIT.error,
      { cause },
    )
  }
}

/** Every zone, or a CommandError that says `file:line: reason`. */
function loadZones(files: readonly string[]): Zone[] {
  const zones = new Map<Fqdn, string>()
  return files.map((file) => {
    const origin = originOf(file)
    const include = (name: string) => readRegularFile(resolve(dirname(file), name))
    const zone = loadZoneFile(readText(file), { file, include, ...(origin !== undefined && { origin }) })
    if (isZoneFileError(zone)) throw new CommandError(`${zone.file}:${zone.line}: ${zone.reason}`)
    const other = zones.get(zone.origin)
    if (other !== undefined) throw new CommandError(`${file}:1: zone ${zone.origin} is already in ${other}`)
    zones.set(zone.origin, file)
    return zone
  })
}

function loadKeys(files: readonly string[]): TsigKey[] {
  return files.flatMap((file) => {
    try {
      return parseKeyFile(readText(file).toString('utf8'), file)
    } catch (error) {
      throw error instanceof DnsError ? new CommandError(error.message) : error
    }
  })
}

function reload(server: DnsServer, files: readonly string[], log: (line: string) => void): void {
  try {
    const zones = loadZones(files)
    const origins = new Set(zones.map((zone) => zone.origin))
    for (const { origin } of server.zones()) if (!origins.has(origin)) server.remove(origin)
    for (const zone of zones) server.swap(zone)
    log(`reloaded ${zones.map((zone) => `${zone.origin} serial ${zone.serial}`).join(', ')}`)
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    log(`error: ${error.message}; the zones loaded before are still served`)
  }
}

async function serve(io: Io, files: readonly string[], flags: Flags): Promise<void> {
  const log = (line: string) => io.stderr.write(`${line}\n`)
  const zones = loadZones(files)
  const keys = loadKeys(flags.key)
  const names = keys.map((key) => key.name)
  const perSecond = Number(flags.rateLimit)
  if (!Number.isInteger(perSecond) || perSecond < 1)
    throw new CommandError(`--rate-limit '${flags.rateLimit}' is not a number from 1`, EXIT.usage)
  const workers = Number(flags.workers)
  if (!Number.isInteger(workers) || workers < 1 || workers > 64)
    throw new CommandError(`--workers '${flags.workers}' is not a number from 1 to 64`, EXIT.usage)
  if (workers > 1 && !CAN_SHARE_PORT)
    log(`--workers needs Node 23.1, and this is ${process.version}: one thread answers`)
  const secondaries: Secondary[] = flags.notify.map((text) => ({
    ...parseAddress(text, 53),
    ...(names[0] !== undefined && { key: names[0] }),
  }))
  let server: DnsServer
  try {
    server = await createDnsServer({
      zones,
      keys,
      listen: flags.listen.map((text) => parseAddress(text, 53)),
      defaultPolicy: { updateKeys: names, transferKeys: names, secondaries },
      rateLimit: { responsesPerSecond: perSecond, isLoopbackLimited: flags.limitLoopback },
      workers,
      onError: (error) => log(`error: ${error instanceof Error ? error.message : String(error)}`),
      onUpdate: (zone) => log(`updated ${zone.origin} serial ${zone.serial} (in memory; the file is unchanged)`),
    })
  } catch (error) {
    throw error instanceof DnsError ? new CommandError(error.message) : error
  }
  const hangUp = () => reload(server, files, log)
  process.on('SIGHUP', hangUp)
  for (const zone of zones) log(`serving ${zone.origin} serial ${zone.serial}, ${zone.names} names`)
  for (const address of server.addresses) io.stdout.write(`ready ${serverText(address)}\n`)
  if (!io.signal.aborted)
    await new Promise<void>((done) => io.signal.addEventListener('abort', () => done(), { once: true }))
  process.off('SIGHUP', hangUp)
  await server.close()
}

const collect = (value: string, all: string[]) => [...all, value]

export function build(io: Io): Command {
  return new Command()
    .description('serve zone files as an authoritative DNS server, by UDP and TCP')
    .argument('<zonefile...>', 'zone files (RFC 1035); the origin is $ORIGIN, else the name of the file')
    .requiredOption('--listen <address>', 'HOST:PORT to answer on, repeatable; port 0 takes a free one', collect, [])
    .option(
      '--key <file>',
      'TSIG keys as tsig-keygen writes them, which may update and transfer every zone, repeatable',
      collect,
      [],
    )
    .option('--notify <address>', 'secondary that gets NOTIFY after a change, repeatable', collect, [])
    .option('--rate-limit <n>', 'responses of one kind a second to one /24 or /56 before they are limited', '20')
    .option('--workers <n>', 'threads that answer UDP on the same port; more than 1 needs Node 23.1', '1')
    .option('--limit-loopback', 'limit the rate of loopback too', false)
    .action(async (files: string[], flags: Flags) => {
      if (flags.listen.length === 0) throw new CommandError('--listen is missing', EXIT.usage)
      await serve(io, files, flags)
    })
}
