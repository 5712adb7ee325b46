/**
 * The flags of `seamark dnslb`: the fifteen of dnslb-controller-manager with their defaults, and ours beyond it. Pure.
 *
 * Differences from the original, each documented in docs/balance.md: `--interval` is the interval of health checks (5 s); a
 * single controller name works; `--providers` is a comma list; nothing is removed when all targets fail, unless
 * `--on-all-unhealthy=Remove`.
 */
import { isAddressRange, type LogLevel, parseListen } from '@seamark/kube'
import { isFieldText } from '@seamark/operator'
import type { Command } from 'commander'
import { CommandError, EXIT } from '../../command.ts'

export interface DnslbFlags {
  kubeconfig?: string
  targetkube: string
  cluster: string
  controllers: string
  identity: string
  ttl: string
  providers: string
  watches: string
  interval: string
  once: boolean
  duration: string
  dryRun: boolean
  port: string
  pluginDir: string
  logLevel: string
  onAllUnhealthy: 'ServeLast' | 'ServeAll' | 'Remove'
  allowLoopbackTargets: boolean
  dnsListen?: string
  dnsZones?: string
  dnsDataDir: string
  omitLease: boolean
  providerNamespaces: string
  secretNamespaces: string
  denyAddresses: string
  /** False with `--no-redirects`. */
  redirects: boolean
  resolver: string
}

export function addDnslbFlags(command: Command): void {
  command
    .option('--kubeconfig <file>', 'kubeconfig of the source cluster; else $KUBECONFIG, the service account')
    .option(
      '--targetkube <file>',
      'kubeconfig of the target cluster, with the load balancers; else the source cluster',
      '',
    )
    .option('--cluster <id>', 'identity of the source cluster; required with --targetkube', '')
    .option('--controllers <list>', 'comma list of all, source, target, endpoint, dns', 'all')
    .option(
      '--identity <text>',
      'DNS record identifier: the owner in ownership records; empty: remove nothing',
      'GardenRing',
    )
    .option('--ttl <seconds>', 'TTL of records whose load balancer gives none', '60')
    .option('--providers <list>', 'dynamic, static, all, or a comma list of provider types', 'dynamic')
    .option('--watches <file>', 'load balancers in a file instead of a cluster', '')
    .option('--interval <seconds>', 'interval of health checks', '5')
    .option('--once', 'only one update instead of a loop', false)
    .option('--duration <seconds>', 'stop after this time; 0: run until stopped', '0')
    .option('--dry-run', 'log changes of DNS records and send none', false)
    .option('--port <address>', 'PORT (on all interfaces) or HOST:PORT of /healthz and /metrics; 0: none', '0')
    .option('--plugin-dir <folder>', 'folder of plug-ins (ES modules)', '')
    .option('-D, --log-level <level>', 'panic, fatal, error, warning, info, debug, trace, or 0 to 5', 'info')
  command
    .addOption(
      command
        .createOption('--on-all-unhealthy <action>', 'what is published while no endpoint is healthy')
        .choices(['ServeLast', 'ServeAll', 'Remove'])
        .default('ServeLast'),
    )
    .option('--allow-loopback-targets', 'let targets be on this machine; for tests', false)
    .option('--dns-listen <address>', 'HOST:PORT of a DNS server in this process')
    .option('--dns-zones <list>', 'comma list of the zones that it serves')
    .option(
      '--dns-data-dir <folder>',
      'folder of its zones; without one that of a Pod, /var/lib/seamark/dns, where it is writable, else memory',
      '',
    )
    .option(
      '--resolver <address>',
      'ADDRESS:PORT of the DNS server for names of targets; else those of the machine',
      '',
    )
    .option('--omit-lease', 'run without leases; only with a single process', false)
    .option('--provider-namespaces <list>', 'take DNSProviders only from these namespaces; empty: from all', '')
    .option('--secret-namespaces <list>', 'let DNSProviders name Secrets only in these namespaces; empty: in all', '')
    .option('--deny-addresses <list>', 'CIDR ranges to which no health check connects, e.g. the Service network', '')
    .option('--no-redirects', 'health checks follow no redirect')
}

const LEVELS = ['silent', 'silent', 'error', 'warn', 'info', 'debug'] as const satisfies readonly LogLevel[]
const LEVEL_NAMES: Readonly<Record<string, LogLevel>> = {
  panic: 'silent',
  fatal: 'silent',
  error: 'error',
  warn: 'warn',
  warning: 'warn',
  info: 'info',
  debug: 'debug',
  trace: 'trace',
}

/** logrus' names and numbers. */
export function readLogLevel(text: string): LogLevel {
  const named = LEVEL_NAMES[text.toLowerCase()]
  if (named !== undefined) return named
  const level = /^\d+$/.test(text) ? LEVELS[Number(text)] : undefined
  if (level === undefined) throw new CommandError('log level must be in the range 0-5', EXIT.error)
  return level
}

/** Which of the two controllers run. */
export function readControllers(text: string): { readonly endpoint: boolean; readonly dns: boolean } {
  const chosen = { endpoint: false, dns: false }
  for (const word of text.split(',')) {
    if (word === 'all' || word === 'source' || word === 'endpoint') chosen.endpoint = true
    if (word === 'all' || word === 'target' || word === 'dns') chosen.dns = true
    if (word !== '' && !['all', 'source', 'target', 'endpoint', 'dns'].includes(word))
      throw new CommandError(`unknown controller or group '${word}'`, EXIT.error)
  }
  if (!chosen.endpoint && !chosen.dns) throw new CommandError('no controller selected', EXIT.error)
  return chosen
}

/** `isStandalone`: without a cluster there are no DNSProvider objects, and `dynamic` means the environment. */
export function readProviders(
  text: string,
  known: readonly string[],
  { isStandalone }: { readonly isStandalone: boolean },
): { readonly isDynamic: boolean; readonly staticTypes: readonly string[]; readonly ignored: readonly string[] } {
  const staticTypes = new Set<string>()
  const ignored: string[] = []
  let isDynamic = false
  for (const word of text.split(',').map((item) => item.trim())) {
    if (word === 'dynamic' || word === 'all') isDynamic = true
    if (word === 'static' || word === 'all' || (word === 'dynamic' && isStandalone))
      for (const type of known) staticTypes.add(type)
    else if (known.includes(word)) staticTypes.add(word)
    else if (word !== 'dynamic') ignored.push(word)
  }
  return { isDynamic: isDynamic && !isStandalone, staticTypes: [...staticTypes], ignored }
}

export function readNumber(flag: string, text: string, { min, max }: { min: number; max: number }): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < min || value > max)
    throw new CommandError(`--${flag} ${text}: it is a whole number from ${min} to ${max}`, EXIT.error)
  return value
}

/** Items of a comma list. */
export function readList(text: string): readonly string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

export function readRanges(text: string): readonly string[] {
  const ranges = readList(text)
  for (const range of ranges)
    if (!isAddressRange(range))
      throw new CommandError(`--deny-addresses ${range}: it is an address or ADDRESS/BITS`, EXIT.error)
  return ranges
}

/** What the HTTP server listens on; undefined: there is none. A port alone is on all interfaces, as in the original. */
export function readListen(text: string): string | undefined {
  const listen = /^\d+$/.test(text) ? `:${readNumber('port', text, { min: 0, max: 65_535 })}` : text
  if (listen === ':0') return undefined
  try {
    parseListen(listen)
  } catch {
    throw new CommandError(`--port ${text}: it is a port from 0 to 65535, or HOST:PORT`, EXIT.error)
  }
  return listen
}

/** The combinations that the original refuses, in its words. */
export function checkFlags({ targetkube, cluster, identity, dnsListen, dnsZones }: DnslbFlags): void {
  if (targetkube !== '' && cluster === '')
    throw new CommandError('cluster identity (for local cluster) required when using separate clusters', EXIT.error)
  if (targetkube === '' && cluster !== '')
    throw new CommandError('cluster identity not possible when not using separate clusters', EXIT.error)
  if (identity !== '' && !isFieldText(identity))
    throw new CommandError(
      `--identity '${identity}': it has at most 128 characters without blanks, quotes, commas, equals or bars`,
      EXIT.error,
    )
  if ((dnsListen === undefined) !== (dnsZones === undefined))
    throw new CommandError('--dns-listen and --dns-zones are given together', EXIT.error)
}
