/**
 * The flags of `seamark contour-plus`: contour-plus' nineteen, the log flags of its libraries (accepted; only the level has an
 * effect here), and one switch for each thing beyond it.
 */
import {
  CONTOUR_PLUS_FLAGS,
  environmentName,
  type FlagName,
  type FlagValues,
  type PublishOptions,
} from '@seamark/operator'
import type { Command } from 'commander'
import { CommandError, EXIT } from '../command.ts'

/** klog's and zap's: names contour-plus takes because its libraries register them. */
const LOG_FLAGS = [
  'add_dir_header',
  'alsologtostderr',
  'legacy_stderr_threshold_behavior',
  'log_backtrace_at',
  'log_dir',
  'log_file',
  'log_file_max_size',
  'logtostderr',
  'one_output',
  'skip_headers',
  'skip_log_headers',
  'stderrthreshold',
  'v',
  'vmodule',
  'zap-devel',
  'zap-encoder',
  'zap-log-level',
  'zap-stacktrace-level',
  'zap-time-encoding',
] as const

const BEYOND = {
  prune: 'delete children that their source no longer asks for',
  'hostname-targets': 'CNAME for load balancers that have a host name only',
  annotations: "read ExternalDNS' and cert-manager's other annotations",
  exclude: 'read seamark.io/exclude: dns,tls',
  'arbitrate-hosts': 'the oldest source owns a host',
  conditions: 'write a condition on the source',
  'ingress-routes': 'read IngressRoute (contour.heptio.com/v1beta1) as well',
} as const

export function addContourPlusFlags(command: Command): void {
  for (const [name, { shape, fallback, help }] of Object.entries(CONTOUR_PLUS_FLAGS)) {
    const suffix = fallback === '' ? '' : ` (default ${fallback})`
    const text = `${help}${suffix} [${environmentName(name)}]`
    if (shape === 'switch') command.option(`--${name} [true|false]`, text)
    else if (shape === 'list')
      command.option(`--${name} <list>`, text, (value: string, before: string[] | undefined) => [
        ...(before ?? []),
        value,
      ])
    else command.option(`--${name} <${shape}>`, text)
  }
  for (const [name, text] of Object.entries(BEYOND)) command.option(`--${name}`, text)
  command.addOption(
    command
      .createOption(
        '--foreign <action>',
        'what to do with an existing object of the same name that another controller made',
      )
      .choices(['take', 'refuse'])
      .default('take'),
  )
  for (const name of LOG_FLAGS) {
    const flag = name === 'v' ? '-v, --v <value>' : `--${name} [value]`
    command.addOption(command.createOption(flag, 'accepted for compatibility').hideHelp())
  }
}

/** The contour-plus flags that were typed. */
export function typedFlags(command: Command): FlagValues {
  const typed: FlagValues = {}
  for (const name of Object.keys(CONTOUR_PLUS_FLAGS) as FlagName[]) {
    const key = name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
    const value = command.getOptionValue(key) as string | true | string[] | undefined
    if (value !== undefined) typed[name] = value === true ? 'true' : value
  }
  return typed
}

export interface BeyondFlags {
  prune?: boolean
  hostnameTargets?: boolean
  annotations?: boolean
  exclude?: boolean
  arbitrateHosts?: boolean
  conditions?: boolean
  ingressRoutes?: boolean
  foreign?: 'take' | 'refuse'
  zapLogLevel?: string
  zapDevel?: string | boolean
}

export function withBeyond(options: PublishOptions, flags: BeyondFlags): PublishOptions {
  return {
    ...options,
    prune: flags.prune ?? options.prune,
    hostnameTargets: flags.hostnameTargets ?? options.hostnameTargets,
    annotations: flags.annotations ?? options.annotations,
    exclude: flags.exclude ?? options.exclude,
    arbitrateHosts: flags.arbitrateHosts ?? options.arbitrateHosts,
    conditions: flags.conditions ?? options.conditions,
    foreign: flags.foreign ?? options.foreign,
    sources: flags.ingressRoutes === true ? [...options.sources, 'IngressRoute'] : options.sources,
  }
}

export function logLevel(flags: BeyondFlags): 'error' | 'info' | 'debug' {
  const level = flags.zapLogLevel ?? (flags.zapDevel === undefined || flags.zapDevel === 'false' ? 'info' : 'debug')
  if (!/^(?:debug|info|error|panic|\d+)$/.test(level))
    throw new CommandError(`--zap-log-level ${level}: must be debug, info, error, panic or a number`, EXIT.usage)
  if (level === 'error' || level === 'panic') return 'error'
  return level === 'debug' || /^\d+$/.test(level) ? 'debug' : 'info'
}
