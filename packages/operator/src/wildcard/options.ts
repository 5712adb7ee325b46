/** What may be configured about wildcards; per installation, the zone and the selector also per cluster. */
export interface WildcardOptions {
  /** `*.<cluster>.<zone>`; a trailing dot is stripped. */
  readonly zone: string
  readonly namePrefix: string
  readonly ttlSeconds: number
  /** Kubernetes label selector; '' is every node. */
  readonly nodeSelector: string
  readonly excludeUnschedulable: boolean
  /** Publish nodes without an external address by their internal one. */
  readonly allowInternal: boolean
  /** Continuous NotReady before a node leaves the answer. */
  readonly removalDelayMs: number
  /** After a write, further changes wait this long and go out together. */
  readonly coalesceMs: number
  /** Do not shrink below this many targets while other nodes could serve. 0 is no floor. */
  readonly minTargets: number
  /** What to do when no node is ready. */
  readonly onEmpty: 'keep' | 'delete'
  /** Publish `<cluster>.<zone>` as well. */
  readonly apex: boolean
  /** Name of the cluster the manager itself runs in; '' publishes registered clusters only. */
  readonly localCluster: string
}

export const wildcardDefaults: WildcardOptions = {
  zone: '',
  namePrefix: '',
  ttlSeconds: 60,
  nodeSelector: '',
  excludeUnschedulable: true,
  allowInternal: true,
  removalDelayMs: 45_000,
  coalesceMs: 5_000,
  minTargets: 0,
  onEmpty: 'keep',
  apex: false,
  localCluster: '',
}
