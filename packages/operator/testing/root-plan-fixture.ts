/** Facts of the plan of a root Ingress with nothing published yet, and Clusters that are ready. */
import type { Ingress } from '@seamark/kube'
import type { Cluster } from '../src/api/cluster.ts'
import { DEFAULT_POLICY } from '../src/api/global-ingress-policy.ts'
import type { PlanFacts } from '../src/fleet/decide/plan.ts'
import { ingressRoot } from '../src/fleet/roots/ingress.ts'

export function readyCluster(name: string, labels: Record<string, string> = {}): Cluster {
  return {
    metadata: { name, labels },
    spec: { weight: 100, namespacePolicy: 'Require' },
    status: {
      servedKinds: ['Ingress'],
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'ClusterReady',
          message: '',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    },
  }
}

/** The first host of the root is its own. */
export function planFactsOf(root: Ingress, clusters: readonly Cluster[]): PlanFacts<Ingress> {
  return {
    root,
    kind: ingressRoot,
    policy: DEFAULT_POLICY,
    ownedHosts: [root.spec?.rules?.[0]?.host ?? ''],
    clusters,
    backendOf: () => ({ state: 'present' }),
    labelledClusters: undefined,
    previous: undefined,
    leaves: new Map(),
    hubId: 'hub',
    hubUid: 'hub',
    allowedAnnotations: [],
    canPublish: true,
    nowMs: 0,
  }
}
