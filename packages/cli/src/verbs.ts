/** The verbs of `seamark`, in alphabetical order. A verb's file is loaded only when it is called. */
import type { Build } from './command.ts'

export interface Verb {
  /** As typed: one word, or two for a group (`dns serve`). */
  readonly name: string
  readonly summary: string
  /** It logs JSON lines on stderr; then its last error is one too. */
  readonly isLogged?: boolean
  readonly load: () => Promise<{ build: Build }>
}

export const VERBS: readonly Verb[] = [
  {
    name: 'adopt',
    summary: 'take ownership of records of ExternalDNS, or of records without an owner; writes markers only',
    load: async () => import('./commands/records/adopt.ts'),
  },
  {
    name: 'apiserver',
    summary: 'run an embedded Kubernetes API server',
    load: async () => import('./commands/servers/apiserver.ts'),
  },
  {
    name: 'apply',
    summary: 'write a plan; refused when the zone changed since',
    load: async () => import('./commands/records/apply.ts'),
  },
  {
    name: 'approve',
    summary: 'let held changes pass, once; without an id, list what is held',
    load: async () => import('./commands/records/approve.ts'),
  },
  {
    name: 'check',
    summary: 'is this cluster ready for it: versions, kinds, rights, providers, clock, ports, others that run beside',
    load: async () => import('./commands/check/check.ts'),
  },
  {
    name: 'cleanup',
    summary: 'remove finalizers, and on request children, before uninstalling',
    load: async () => import('./commands/cleanup.ts'),
  },
  {
    name: 'cluster',
    summary: 'register, list and remove member clusters, or renew their tokens',
    load: async () => import('./commands/fleet/cluster.ts'),
  },
  {
    name: 'completion',
    summary: 'print a completion script for bash, zsh, fish or kubectl',
    load: async () => import('./commands/completion/completion.ts'),
  },
  {
    name: 'config view',
    summary: 'print the configuration the manager would run with',
    load: async () => import('./commands/config-view.ts'),
  },
  {
    name: 'contour-plus',
    summary: 'drop-in for contour-plus: DNS records and certificates for Contour',
    isLogged: true,
    load: async () => import('./commands/publish/contour-plus.ts'),
  },
  {
    name: 'convert',
    summary: 'convert IngressRoutes to HTTPProxies, or back',
    load: async () => import('./commands/gateway/convert.ts'),
  },
  { name: 'crds', summary: "print the CRDs of Seamark's own kinds", load: async () => import('./commands/crds.ts') },
  {
    name: 'dig',
    summary: 'query DNS servers, in the syntax of dig',
    load: async () => import('./commands/dig/dig.ts'),
  },
  {
    name: 'dns serve',
    summary: 'serve zone files as an authoritative DNS server',
    load: async () => import('./commands/servers/dns-serve.ts'),
  },
  {
    name: 'dnslb',
    summary: 'drop-in for dnslb-controller-manager: health-checked DNS load balancing',
    isLogged: true,
    load: async () => import('./commands/balance/dnslb.ts'),
  },
  {
    name: 'drain',
    summary: 'move all leaves away from a cluster, without a gap in service',
    load: async () => import('./commands/fleet/drain.ts'),
  },
  {
    name: 'explain',
    summary: 'why a host answers as it does, hop by hop',
    load: async () => import('./commands/explain/explain.ts'),
  },
  {
    name: 'export',
    summary: 'print our records as a zone file or as DNSEndpoints',
    load: async () => import('./commands/records/export.ts'),
  },
  {
    name: 'gateway',
    summary: 'serve Ingress, HTTPProxy and Gateway API with the built-in proxy; translate manifests offline',
    isLogged: true,
    load: async () => import('./commands/gateway/gateway.ts'),
  },
  {
    name: 'hub',
    summary: 'prepare the hub of a fleet: namespace, CRDs, rights, and the configuration of its manager',
    load: async () => import('./commands/fleet/hub.ts'),
  },
  {
    name: 'plan',
    summary: 'print what would be written to DNS, what is held, and why',
    load: async () => import('./commands/records/plan.ts'),
  },
  {
    name: 'playground',
    summary: 'a hub, three clusters, DNS, the manager and its page on this machine; break it, watch it heal',
    load: async () => import('./commands/playground/playground.ts'),
  },
  {
    name: 'provider',
    summary: 'list, test and check DNS providers, or serve one to ExternalDNS',
    load: async () => import('./commands/records/provider.ts'),
  },
  {
    name: 'release',
    summary: 'give up ownership of records; removes our markers only',
    load: async () => import('./commands/records/release.ts'),
  },
  { name: 'run', summary: 'run the manager', isLogged: true, load: async () => import('./commands/run/run.ts') },
  {
    name: 'shift',
    summary: 'move the traffic of a host to one cluster, in steps',
    load: async () => import('./commands/fleet/shift.ts'),
  },
  {
    name: 'status',
    summary: 'the overview: clusters, what needs somebody, zones, the last hour',
    load: async () => import('./commands/explain/status.ts'),
  },
  {
    name: 'transfer',
    summary: 'pass ownership of records to another owner',
    load: async () => import('./commands/records/transfer.ts'),
  },
  {
    name: 'tree',
    summary: 'a global host: root, leaves, addresses and their states',
    load: async () => import('./commands/explain/tree.ts'),
  },
  {
    name: 'undo',
    summary: 'take applied plans back, or list them',
    load: async () => import('./commands/records/undo.ts'),
  },
  {
    name: 'undrain',
    summary: 'let a drained cluster take leaves and traffic again',
    load: async () => import('./commands/fleet/undrain.ts'),
  },
  { name: 'version', summary: 'print the version', load: async () => import('./commands/version.ts') },
]

export function findVerb(verbs: readonly Verb[], argv: readonly string[]): { verb: Verb; rest: string[] } | undefined {
  for (const words of [2, 1]) {
    const name = argv.slice(0, words).join(' ')
    const verb = verbs.find((candidate) => candidate.name === name)
    if (verb !== undefined) return { verb, rest: argv.slice(words) }
  }
  return undefined
}
