/** The configuration that `seamark hub init` writes: what belongs together for hosts on several clusters. Pure. */
export interface HubConfigOptions {
  readonly namespace: string
  /** Undefined: others answer the DNSEndpoints. */
  readonly zone: string | undefined
  /** The API server of the hub is on this machine. */
  readonly isLocal: boolean
}

/** A port that needs no rights; the default of the playground, too. */
export const DNS_LISTEN = '127.0.0.1:8053'
/** `kubectl port-forward` reaches it in a Pod. */
const PAGE_LISTEN = '127.0.0.1:8182'

export function hubConfig({ namespace, zone, isLocal }: HubConfigOptions): string {
  return `# Written by seamark hub init; start the manager with: seamark run --config seamark.yaml
apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
# Where the manager has its Lease and its state, and where the Secrets of clusters are.
namespace: ${namespace}
# observe: decide and report, write nothing.
mode: enforce
${isLocal ? LOCAL : ''}# Roots are placed on the registered clusters,
fleet:
  enabled: true
${zone === undefined ? ANSWERED_ELSEWHERE : ''}# probed, and published while they are healthy.
balance:
  enabled: true
${zone === undefined ? '' : dnsPart(zone)}# Hosts of ingress controllers of the hub itself are not published.
publish:
  enabled: false
# The page, for browsers of this machine.
dashboard:
  address: '${PAGE_LISTEN}'
`
}

const LOCAL = `# The API server of the hub is on this machine: those of clusters, and what is probed, may be, too.
allowLoopback: true
`

const ANSWERED_ELSEWHERE = `  # ExternalDNS publishes the DNSEndpoints. To answer here: dns.listen and dns.zones, without this line.
  answeredElsewhere: true
`

const dnsPart = (
  zone: string,
): string => `# This process answers DNS itself. For resolvers of others: port 53 of an address that they reach.
dns:
  listen: ['${DNS_LISTEN}']
  zones: [${JSON.stringify(zone)}]
`
