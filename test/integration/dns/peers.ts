/**
 * Real DNS servers on loopback for one test file: BIND, Knot, PowerDNS, each in its own temporary folder and on a free port.
 * `start…` resolves when the server answers for its zones; `close` ends it and removes the folder.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDnsClient, DnsError, fqdn, type ServerAddress } from '@seamark/dns'
import { findProgram } from '@seamark/kit'

export interface Key {
  readonly name: string
  readonly algorithm: string
  /** Base64. */
  readonly secret: string
}

export interface Peer {
  readonly address: ServerAddress
  readonly folder: string
  /** All the server printed. */
  log(): string
  close(): Promise<void>
}

export interface ZoneText {
  readonly origin: string
  readonly text: string
}

/** A port that is free for UDP and TCP now. */
export async function freePort(): Promise<number> {
  for (;;) {
    const tcp = createServer().listen(0, '127.0.0.1')
    await once(tcp, 'listening')
    const { port } = tcp.address() as { port: number }
    const udp = createSocket('udp4')
    const isFree = await new Promise<boolean>((resolve) => {
      udp.once('error', () => resolve(false))
      udp.bind(port, '127.0.0.1', () => resolve(true))
    })
    if (isFree) udp.close()
    tcp.close()
    await once(tcp, 'close')
    if (isFree) return port
  }
}

function run(program: string, args: readonly string[], folder: string): { child: ChildProcess; log: () => string } {
  const file = findProgram(program)
  if (file === undefined) throw new Error(`${program} is not installed`)
  const child = spawn(file, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  child.stdout.on('data', (chunk) => (text += String(chunk)))
  child.stderr.on('data', (chunk) => (text += String(chunk)))
  return { child, log: () => text }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
  await ended
  clearTimeout(timer)
}

async function untilAnswering(
  address: ServerAddress,
  origin: string,
  child: ChildProcess,
  log: () => string,
): Promise<void> {
  const client = createDnsClient({ timeoutMs: 200, tries: 1 })
  try {
    for (const deadline = Date.now() + 20_000; Date.now() < deadline;) {
      if (child.exitCode !== null) break
      try {
        const { message } = await client.query({ server: address, name: origin, type: 'SOA' })
        if (message.rcode === 0 && message.answers.length > 0) return
      } catch (error) {
        if (!(error instanceof DnsError)) throw error
      }
      await sleep(50)
    }
    throw new Error(`the server does not answer for ${origin}:\n${log()}`)
  } finally {
    await client.close()
  }
}

async function launch(
  program: string,
  args: readonly string[],
  folder: string,
  port: number,
  origin: string,
): Promise<Peer> {
  const { child, log } = run(program, args, folder)
  const address = { address: '127.0.0.1', port }
  const close = async () => {
    await stop(child)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await untilAnswering(address, origin, child, log)
  } catch (error) {
    await close()
    throw error
  }
  return { address, folder, log, close }
}

const newFolder = (name: string): string => mkdtempSync(join(tmpdir(), `seamark-${name}-`))

const keyText = (key: Key) => `key "${key.name}" { algorithm ${key.algorithm}; secret "${key.secret}"; };\n`

export async function startBind(
  zones: readonly ZoneText[],
  keys: readonly Key[] = [],
  extra = '',
  notify: 'no' | 'explicit' = 'no',
): Promise<Peer> {
  const folder = newFolder('bind')
  const port = await freePort()
  const names = keys.map((key) => `key "${key.name}";`).join(' ')
  const policy = keys.length === 0 ? '' : `allow-update { ${names} }; allow-transfer { ${names} };`
  const blocks = zones.map(({ origin, text }, i) => {
    writeFileSync(join(folder, `${i}.zone`), text)
    return `zone "${origin}" { type primary; file "${i}.zone"; check-names ignore; ${policy} };`
  })
  const options = `options { directory "${folder}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
    pid-file "named.pid"; session-keyfile "session.key"; recursion no; dnssec-validation no; notify ${notify};
    minimal-responses yes; minimal-any yes; check-integrity no; check-wildcard no; ${extra} };
    controls { };`
  writeFileSync(join(folder, 'named.conf'), keys.map(keyText).join('') + options + blocks.join('\n'))
  return launch('named', ['-c', join(folder, 'named.conf'), '-g', '-n', '1'], folder, port, zones[0]!.origin)
}

/** BIND as a secondary of a server on loopback; it answers when the zone has been transferred. */
export async function startBindSecondary(
  origin: string,
  primaryPort: number,
  key: Key,
  wantedPort?: number,
): Promise<Peer> {
  const folder = newFolder('bind')
  const port = wantedPort ?? (await freePort())
  const text = `${keyText(key)}
    options { directory "${folder}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
      pid-file "named.pid"; session-keyfile "session.key"; recursion no; dnssec-validation no; notify no;
      minimal-responses yes; };
    controls { };
    zone "${origin}" { type secondary; file "copy.zone"; masterfile-format text;
      primaries { 127.0.0.1 port ${primaryPort} key "${key.name}"; }; };`
  writeFileSync(join(folder, 'named.conf'), text)
  return launch('named', ['-c', join(folder, 'named.conf'), '-g', '-n', '1'], folder, port, origin)
}

export async function startKnot(
  zones: readonly ZoneText[],
  keys: readonly Key[] = [],
  zoneExtra = '',
  extra = '',
  wantedPort?: number,
): Promise<Peer> {
  const folder = newFolder('knot')
  mkdirSync(join(folder, 'db'))
  const port = wantedPort ?? (await freePort())
  const keyBlock = keys.map((key) => `  - id: ${key.name}\n    algorithm: ${key.algorithm}\n    secret: ${key.secret}`)
  const acl = keys.length === 0 ? '' : `    acl: ddns\n`
  const blocks = zones.map(({ origin, text }, i) => {
    if (text !== '') writeFileSync(join(folder, `${i}.zone`), text)
    return `  - domain: ${origin}\n    storage: "${folder}"\n    file: "${i}.zone"\n    semantic-checks: off\n${acl}${zoneExtra}`
  })
  const conf = [
    `server:\n    rundir: "${folder}"\n    listen: 127.0.0.1@${port}\n    udp-workers: 1\n    tcp-workers: 1\n    background-workers: 1\n    automatic-acl: on`,
    'log:\n  - target: stderr\n    any: info',
    `database:\n    storage: "${folder}/db"`,
    ...(keys.length === 0
      ? []
      : [
          `key:\n${keyBlock.join('\n')}`,
          `acl:\n  - id: ddns\n    key: [${keys.map((key) => key.name).join(', ')}]\n    action: [update, transfer]`,
        ]),
    ...(extra === '' ? [] : [extra]),
    `zone:\n${blocks.join('\n')}`,
  ]
  writeFileSync(join(folder, 'knot.conf'), `${conf.join('\n')}\n`)
  return launch('knotd', ['-c', join(folder, 'knot.conf')], folder, port, zones[0]!.origin)
}

/** PowerDNS with SQLite; zones are loaded from their text. */
export async function startPowerDns(zones: readonly ZoneText[], keys: readonly Key[]): Promise<Peer> {
  const folder = newFolder('pdns')
  const port = await freePort()
  const database = join(folder, 'pdns.sqlite3')
  const schema = readFileSync('/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql', 'utf8')
  execFileSync(findProgram('sqlite3')!, [database], { input: schema })
  writeFileSync(
    join(folder, 'pdns.conf'),
    [
      'launch=gsqlite3',
      `gsqlite3-database=${database}`,
      'gsqlite3-dnssec=yes',
      'local-address=127.0.0.1',
      `local-port=${port}`,
      `socket-dir=${folder}`,
      'daemon=no',
      'guardian=no',
      'disable-syslog=yes',
      'write-pid=no',
      'dnsupdate=yes',
      'allow-dnsupdate-from=127.0.0.0/8',
      'cache-ttl=0',
      'query-cache-ttl=0',
      'negquery-cache-ttl=0',
      'zone-cache-refresh-interval=0',
    ].join('\n'),
  )
  const util = (...args: string[]) =>
    execFileSync(findProgram('pdnsutil')!, ['--config-dir', folder, ...args], { stdio: 'pipe' })
  for (const [i, { origin, text }] of zones.entries()) {
    const file = join(folder, `${i}.zone`)
    writeFileSync(file, text)
    util('load-zone', fqdn(origin).slice(0, -1), file)
  }
  for (const key of keys) {
    util('import-tsig-key', key.name, key.algorithm, key.secret)
    for (const { origin } of zones) {
      util('set-meta', fqdn(origin).slice(0, -1), 'TSIG-ALLOW-DNSUPDATE', key.name)
      util('set-meta', fqdn(origin).slice(0, -1), 'TSIG-ALLOW-AXFR', key.name)
    }
  }
  return launch('pdns_server', [`--config-dir=${folder}`], folder, port, zones[0]!.origin)
}
