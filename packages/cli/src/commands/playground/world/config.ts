/** The configuration of the world's manager: every capability. `explain` and `plan` in another terminal read the same file. */
import { type ListenAddress, serverText } from '@seamark/dns'
import { CONFIG_API_VERSION } from '@seamark/operator'
import { MANAGER_NAMESPACE } from './members.ts'
import { LOAD_BALANCER, ZONE } from './objects.ts'

export interface ConfigFacts {
  /** What answers. */
  readonly dns: ListenAddress
  /** What accepts changes. */
  readonly door: ListenAddress
  readonly keyName: string
  readonly keyFile: string
  readonly page: ListenAddress
}

export const configText = ({
  dns,
  door,
  keyName,
  keyFile,
  page,
}: ConfigFacts): string => `apiVersion: ${CONFIG_API_VERSION}
kind: ManagerConfiguration
namespace: ${MANAGER_NAMESPACE}
mode: enforce
# Everything is on this machine, with one replica.
allowLoopback: true
leaderElection: { enabled: false }
metrics: { address: '0' }
probes: { address: '0' }
dashboard: { address: '${serverText(page)}' }
# Hosts on several clusters: roots of the hub are placed on eu1, us1 and ap1, probed, and published while they are healthy.
fleet:
  enabled: true
  dnsServers: ['${serverText(dns)}']
  contactInterval: 2s
balance:
  enabled: true
  sources: []
  # An endpoint that failed is back soon after it is mended.
  ejection: 2s
  maxChangesPerMinute: 600
  resolver: '${serverText(dns)}'
# Hosts of the hub's own gateway.
publish:
  enabled: true
  services:
    - service: ${LOAD_BALANCER}
# *.CLUSTER.${ZONE}: the ready nodes of each cluster.
wildcard:
  enabled: true
  zone: ${ZONE}
records:
  enabled: true
  owner: playground
  dnsEndpoints:
    enabled: true
  providers:
    - name: provider
      type: rfc2136
      server: ${serverText(door)}
      zones: [${ZONE}]
      requestsPerSecond: 1000
      key:
        name: ${keyName}
        secretFrom: { file: ${JSON.stringify(keyFile)} }
`
