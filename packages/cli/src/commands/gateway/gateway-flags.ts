/** Flags of `seamark gateway` and `seamark gateway translate`; those of `contour serve` where the meaning is the same. */
import { isIP } from 'node:net'
import { BUILD_DEFAULTS, type BuildSettings, type ListenAddress } from '@seamark/gateway'
import type { LoadBalancerIngress } from '@seamark/kube'
import { type Command, Option } from 'commander'
import { CommandError, EXIT } from '../../command.ts'

export interface BuildFlags {
  mode: 'cluster' | 'global'
  ingressClassName?: string
  rootNamespaces?: string
  gateway?: string
  enableExternalNameService?: boolean
}

export function addBuildFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--mode <mode>',
        'cluster: Services behind routes; global: clusters behind the hosts of GlobalIngresses',
      )
        .choices(['cluster', 'global'])
        .default('cluster'),
    )
    .option('--ingress-class-name <names>', 'classes that are served, comma-separated; else contour, seamark and none')
    .option('--root-namespaces <names>', 'namespaces that may contain root HTTPProxies, comma-separated; else all')
    .option('--gateway <namespace/name>', 'the Gateway to serve; else every Gateway of our GatewayClasses')
    .option(
      '--enable-external-name-service',
      'resolve Services of type ExternalName; tenants can then reach any address',
    )
}

export function buildSettings(flags: BuildFlags): BuildSettings {
  const list = (text = '') =>
    text
      .split(',')
      .map((each) => each.trim())
      .filter((each) => each !== '')
  const { ingressClassName, gateway } = flags
  if (gateway !== undefined && !/^[^/]+\/[^/]+$/.test(gateway))
    throw new CommandError(`--gateway ${gateway} is not NAMESPACE/NAME`, EXIT.usage)
  return {
    ...BUILD_DEFAULTS,
    mode: flags.mode,
    ...(ingressClassName !== undefined && { ingressClassNames: list(ingressClassName), servesUnclassified: false }),
    rootNamespaces: list(flags.rootNamespaces),
    ...(gateway !== undefined && { gateway }),
    allowsExternalNames: flags.enableExternalNameService === true,
  }
}

/** `HOST:PORT`, `[V6]:PORT` or `:PORT`. */
export function parseListen(flag: string, text: string): ListenAddress {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]*)):(?<port>\d{1,5})$/.exec(text)
  const port = Number(match?.groups?.['port'])
  if (match === null || port > 65_535) throw new CommandError(`${flag} ${text} is not HOST:PORT`, EXIT.usage)
  const host = match.groups?.['v6'] ?? match.groups?.['host'] ?? ''
  return { host: host === '' ? '::' : host, port }
}

export function parseAddresses(text: string | undefined): LoadBalancerIngress[] {
  const parts = (text ?? '')
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
  return parts.map((each) => (isIP(each) === 0 ? { hostname: each } : { ip: each }))
}

/** Several installations in one namespace have a Lease each: the name contains the Gateway or class that is served. */
export function leaseName({ gateway, ingressClassName }: Pick<BuildFlags, 'gateway' | 'ingressClassName'>): string {
  const part = (gateway ?? ingressClassName ?? '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  return part === '' ? 'seamark-gateway' : `seamark-gateway-${part}`
}
