/** What a manager with fleet, balance and dns asks the hub for: the configuration that `seamark hub init` writes. */
import type { Rule } from './account.ts'

const READ = ['get', 'list', 'watch']
const WRITE = [...READ, 'create', 'patch', 'delete']

const rule = (group: string, resources: readonly string[], verbs: readonly string[]): Rule => ({
  apiGroups: [group],
  resources,
  verbs,
})

export const HUB_RULES: readonly Rule[] = [
  // Roots: status, finalizer and one annotation.
  rule('networking.k8s.io', ['ingresses'], [...READ, 'patch']),
  rule('gateway.networking.k8s.io', ['httproutes', 'gateways'], [...READ, 'patch']),
  rule('route.openshift.io', ['routes'], [...READ, 'patch']),
  rule('networking.k8s.io', ['ingresses/status'], ['get', 'patch']),
  rule('gateway.networking.k8s.io', ['httproutes/status'], ['get', 'patch']),
  rule('route.openshift.io', ['routes/status'], ['get', 'patch']),
  rule('networking.k8s.io', ['ingressclasses'], READ),
  rule('gateway.networking.k8s.io', ['gatewayclasses', 'referencegrants'], READ),
  rule('', ['services', 'namespaces'], [...READ]),
  // Our kinds.
  rule('seamark.io', ['clusters', 'globalingresspolicies', 'domainverifications'], [...READ, 'patch']),
  rule('seamark.io', ['globalingresses', 'leafingresses', 'hostclaims'], WRITE),
  rule(
    'seamark.io',
    [
      'clusters/status',
      'domainverifications/status',
      'globalingresses/status',
      'globalingresspolicies/status',
      'hostclaims/status',
      'leafingresses/status',
    ],
    ['get', 'patch'],
  ),
  rule('loadbalancer.gardener.cloud', ['dnsloadbalancers', 'dnsloadbalancerendpoints', 'dnsproviders'], WRITE),
  rule(
    'loadbalancer.gardener.cloud',
    ['dnsloadbalancers/status', 'dnsloadbalancerendpoints/status', 'dnsproviders/status'],
    ['get', 'patch'],
  ),
  rule('externaldns.k8s.io', ['dnsendpoints'], WRITE),
  rule('externaldns.k8s.io', ['dnsendpoints/status'], ['get', 'patch']),
  // The manager keeps its CRDs current, and waits for kinds that are installed later.
  rule('apiextensions.k8s.io', ['customresourcedefinitions'], [...READ, 'create', 'patch']),
  // Leases of other managers that write the same objects are looked at before the first write.
  rule('coordination.k8s.io', ['leases'], ['list']),
  { ...rule('', ['configmaps'], ['get']), resourceNames: ['dnslb-controller-manager-lease'] },
  // `list`: what was reported minutes before a restart is not reported again.
  rule('events.k8s.io', ['events'], ['create', 'patch', 'list']),
]

/** In the namespace of the manager: its Lease, its state and zones, and the kubeconfigs of members. */
export const HOME_RULES: readonly Rule[] = [
  rule('coordination.k8s.io', ['leases'], [...READ, 'create', 'update', 'patch']),
  rule('', ['configmaps'], [...READ, 'create', 'update', 'patch', 'delete']),
  rule('', ['secrets'], READ),
]
