/** Values that people would have, by what they are for, and ones that are refused. */
import type { Values } from './helm.ts'

const owner = { records: { owner: 'example' } }
const dns = { enabled: true }
const zones = { zones: ['example.com'] }
const rfc2136 = {
  enabled: true,
  owner: 'example',
  dnsEndpoints: { enabled: true },
  providers: [
    {
      name: 'primary',
      type: 'rfc2136',
      server: '192.0.2.53:53',
      zones: ['example.com'],
      key: { name: 'seamark', algorithm: 'hmac-sha256', secretFrom: { secret: 'seamark/tsig', key: 'secret' } },
    },
  ],
}

export const VALUE_SETS: Readonly<Record<string, Values>> = {
  'nothing: hosts of a cluster, observed': {},
  'one cluster with Contour and cert-manager': {
    mode: 'enforce',
    config: {
      ...owner,
      publish: { services: [{ service: 'projectcontour/envoy' }], defaultIssuerName: 'letsencrypt' },
    },
  },
  'records of a DNS provider': { mode: 'enforce', config: { records: rfc2136 } },
  'DNS alone, answered by the manager': {
    mode: 'enforce',
    dns,
    config: { ...owner, dns: zones, publish: { enabled: false } },
  },
  'DNS with secondaries': {
    dns: { ...dns, secondaries: ['ns2.example.net:53'], service: { type: 'NodePort' } },
    config: {
      dns: { ...zones, keys: [{ name: 'transfer', secretFrom: { secret: 'seamark/transfer', key: 'secret' } }] },
    },
  },
  'a hub with members': {
    mode: 'enforce',
    dns,
    config: { ...owner, dns: zones, fleet: { enabled: true, tlsSecrets: true }, balance: { enabled: true } },
  },
  'a hub whose hosts ExternalDNS publishes': { config: { fleet: { enabled: true, answeredElsewhere: true } } },
  'load balancing with webhooks and version v1': {
    mode: 'enforce',
    admission: { enabled: true },
    config: { ...owner, balance: { enabled: true }, records: rfc2136 },
  },
  'a gateway with Envoy': {
    mode: 'enforce',
    config: { ...owner, gateway: { enabled: true }, publish: { enabled: false } },
  },
  'a gateway with Envoy on every node, and a port of a Gateway': {
    mode: 'enforce',
    gateway: { kind: 'DaemonSet', service: { type: 'NodePort', extraPorts: [{ port: 9_443 }] } },
    config: { ...owner, gateway: { enabled: true } },
  },
  'the built-in proxy': {
    mode: 'enforce',
    gateway: { dataPlane: 'built-in' },
    config: { ...owner, gateway: { enabled: true } },
  },
  'wildcards of clusters': {
    config: { wildcard: { enabled: true, zone: 'clusters.example.com', localCluster: 'here' } },
  },
  'the page, beyond its Pod': { dashboard: { enabled: true, tlsSecret: 'page' } },
  everything: {
    mode: 'enforce',
    dns,
    admission: { enabled: true, failurePolicy: 'Fail' },
    replicaCount: 3,
    image: { digest: `sha256:${'0'.repeat(64)}` },
    priorityClassName: 'system-cluster-critical',
    networkPolicy: { egress: [{}] },
    config: {
      ...owner,
      dns: zones,
      balance: { enabled: true },
      fleet: { enabled: true },
      gateway: { enabled: true },
      wildcard: { enabled: true, zone: 'clusters.example.com' },
    },
  },
}

interface Refused {
  readonly values: Values
  /** Of what Helm says: the path, and what to do. */
  readonly says: readonly string[]
}

export const REFUSED: Readonly<Record<string, Refused>> = {
  'an unknown value': { values: { replicas: 3 }, says: ["'replicas'"] },
  'an unknown setting': { values: { config: { publish: { prunes: true } } }, says: ['/config/publish', "'prunes'"] },
  'a wrong type': { values: { config: { balance: { ttl: 'soon' } } }, says: ['/config/balance/ttl', 'string'] },
  'a value of no choice': { values: { mode: 'perhaps' }, says: ['/mode', 'observe'] },
  'a port that is none': {
    values: { gateway: { service: { extraPorts: [{ port: 80 }] } } },
    says: ['/gateway/service/extraPorts/0/port', 'minimum'],
  },
  'dns without zones': { values: { dns }, says: ['config.dns.zones', 'such as [example.com]'] },
  'a DNS server in the configuration without zones': {
    values: { config: { dns: { listen: [':5353'] } } },
    says: ['config.dns.listen', 'add config.dns.zones'],
  },
  'zones that nobody answers': {
    values: { config: { dns: zones } },
    says: ['config.dns.zones', 'set dns.enabled: true'],
  },
  'enforce without an owner id': {
    values: { mode: 'enforce' },
    says: ['config.records.owner', 'set config.records.owner'],
  },
  'two modes': {
    values: { mode: 'enforce', config: { ...owner, mode: 'observe' } },
    says: ['config.mode', 'set one of them'],
  },
  'a fleet whose hosts nobody answers': {
    values: { config: { fleet: { enabled: true } } },
    says: ['config.fleet.enabled', 'config.balance.enabled: true'],
  },
  'two data planes': {
    values: { config: { gateway: { enabled: true, envoy: 'off' } } },
    says: ['config.gateway.envoy', 'gateway.dataPlane: built-in'],
  },
  'a folder of zones for several replicas': {
    values: { dns, config: { dns: { ...zones, dataDir: '/var/lib/seamark/dns' } } },
    says: ['config.dns.dataDir', 'replicaCount: 1'],
  },
  'several replicas without an election': {
    values: { config: { leaderElection: { enabled: false } } },
    says: ['config.leaderElection.enabled', 'replicaCount: 1'],
  },
  'records without a provider': {
    values: { config: { records: { enabled: true, owner: 'example' } } },
    says: ['config.records.providers', 'add one'],
  },
  'a wildcard without a zone': { values: { config: { wildcard: { enabled: true } } }, says: ['config.wildcard.zone'] },
  'webhooks in the configuration alone': {
    values: { config: { admission: { address: ':9443' } } },
    says: ['config.admission.address', 'admission.enabled: true'],
  },
  'a privileged port': {
    values: { dns, config: { dns: { ...zones, listen: [':53'] } } },
    says: ['port 53', 'from 1024'],
  },
  'two listeners on one port': {
    values: { config: { metrics: { address: ':8181' } } },
    says: ['the same port 8181'],
  },
  'secondaries without a key': {
    values: { dns: { ...dns, secondaries: ['ns2.example.net:53'] }, config: { dns: zones } },
    says: ['dns.secondaries', 'config.dns.keys'],
  },
  'the page without a certificate': {
    values: { dashboard: { enabled: true } },
    says: ['dashboard.tlsSecret', 'kubectl port-forward'],
  },
  'a port of a Gateway that Envoy uses': {
    values: {
      gateway: { service: { extraPorts: [{ port: 19_003 }, { port: 8_443 }, { port: 9_000 }, { port: 9_000 }] } },
      config: { gateway: { enabled: true } },
    },
    says: [
      'gateway.service.extraPorts: port 19003 is that of the preStop hook',
      'port 8443 is that of config.gateway.httpsListen',
      'port 9000 is that of another entry; remove it',
    ],
  },
  'an owner that no DNS record can hold': {
    values: { mode: 'enforce', config: { records: { owner: 'a,b' } } },
    says: ['config.records.owner', 'choose another name'],
  },
  'an owner with a blank': {
    values: { mode: 'enforce', config: { records: { owner: 'a b' } } },
    says: ['config.records.owner', 'visible ASCII'],
  },
  'zones that are none, and one twice': {
    values: { dns, config: { dns: { zones: ['bad zone!', '*.example.com', 'a.test', 'A.test.'] } } },
    says: ['config.dns.zones: "bad zone!" is no DNS name', '"*.example.com" is no DNS name', '"a.test" is named twice'],
  },
  'a wildcard in the zone of wildcards': {
    values: { config: { wildcard: { enabled: true, zone: '*.example.com' } } },
    says: ['config.wildcard.zone', 'write ZONE'],
  },
  'addresses without a port, or with none': {
    values: { config: { metrics: { address: 'here' }, probes: { address: ':99999' } } },
    says: ['config.metrics.address: "here" is not HOST:PORT', 'config.probes.address: ":99999"'],
  },
  'a duration that is none': {
    values: { config: { leaderElection: { leaseDuration: 'soon' } } },
    says: ['/config/leaderElection/leaseDuration', 'pattern'],
  },
  'no configuration at all': { values: { config: null }, says: ["'config'"] },
  'a section that is removed': { values: { gateway: null }, says: ["'gateway'"] },
  'no time to drain': { values: { drainSeconds: 0 }, says: ['/drainSeconds', 'minimum'] },
  'another namespace': {
    values: { config: { namespace: 'other' } },
    says: ['config.namespace', 'leave config.namespace out'],
  },
}
