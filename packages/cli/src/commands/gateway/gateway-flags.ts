/** Flags of `seamark gateway` and `seamark gateway translate`; those of `contour serve` where the meaning is the same. */
import { isIP } from 'node:net'
import { BUILD_DEFAULTS, type BuildSettings, type ListenAddress, type ListenAddresses } from '@seamark/gateway'
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

export interface PortFlags {
  listenerAddress?: string[]
  listenerPortOffset: string
}

export function addPortFlags(command: Command): Command {
  return command
    .option(
      '--listener-address <port=host:port...>',
      'address of a port of Gateways besides the main ones; else the host of --http-listen or --https-listen and the port',
    )
    .option('--listener-port-offset <n>', 'added to such a port where no address is given', '0')
}

export function portOptions(flags: PortFlags): Pick<ListenAddresses, 'ports' | 'portOffset'> {
  const portOffset = Number(flags.listenerPortOffset)
  if (!Number.isInteger(portOffset))
    throw new CommandError(`--listener-port-offset ${flags.listenerPortOffset} is not an integer`, EXIT.usage)
  return { ports: parsePorts('--listener-address', flags.listenerAddress ?? []), portOffset }
}

/** `PORT=HOST:PORT`, each. */
export function parsePorts(flag: string, texts: readonly string[]): Record<number, ListenAddress> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, port = '', address = ''] = /^(\d{1,5})=(.+)$/.exec(text) ?? []
      if (port === '' || Number(port) < 1 || Number(port) > 65_535)
        throw new CommandError(`${flag} ${text} is not PORT=HOST:PORT`, EXIT.usage)
      return [Number(port), parseListen(flag, address)]
    }),
  )
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
