/**
 * Follows the Secrets that register clusters and engages them in the manager's fleet, for every capability that uses member
 * clusters.
 *
 * Guarantees: one connection and one set of caches per cluster, however many capabilities use it. New credentials for the
 * same server are taken over without interrupting a watch; another server is engaged anew. A kubeconfig that is refused
 * disengages the cluster and reports why; nothing of other clusters changes.
 */
import {
  type Cluster,
  type ClusterConfig,
  ConfigError,
  type Context,
  type Manager,
  messageOf,
  parseRemoteConfig,
  Secret,
} from '@seamark/kube'
import { type Finding, warning } from '../finding.ts'
import { CLUSTER_LABEL, readRegistry, type Registration } from './registry.ts'

export interface MemberRegistryOptions {
  readonly namespace: string
  /** Registered clusters may be on this machine. */
  readonly allowLoopback: boolean
  /** Address ranges that no registered cluster may be in; read again in each term. */
  readonly denyAddresses: () => readonly string[]
  readonly connect: (config: ClusterConfig, name: string) => Cluster
  /** Called with every connected cluster, before anything is sent. */
  readonly guard: (cluster: Cluster) => void
}

interface RegisteredCluster {
  readonly registration: Registration
  /** Undefined: its kubeconfig was refused. */
  readonly cluster: Cluster | undefined
  readonly refusal: Finding | undefined
}

export interface MemberRegistry {
  readonly clusters: ReadonlyMap<string, RegisteredCluster>
  /** False until the Secrets were read once: until then no cluster is known to be absent. */
  readonly isRead: boolean
  /** Call before each term of leadership: another process may have registered and removed clusters. */
  renew(): void
  /** The listener gets the name of a cluster that was registered, changed or removed. Returns the unsubscribe function. */
  subscribe(listener: (cluster: string) => void): () => void
}

const REGISTRY_KEY = 'registry'

export function setUpMembers(manager: Manager, options: MemberRegistryOptions): MemberRegistry {
  const registry = new Members(manager, options)
  manager
    .keyedController('clusters', { concurrency: 1, timeout: '1m' })
    .watches(Secret, () => [REGISTRY_KEY], { namespace: options.namespace, labelSelector: CLUSTER_LABEL })
    .triggers((mark) => {
      mark([REGISTRY_KEY])
      return undefined
    })
    .reconcile(async (_key, context) => registry.follow(context))
  return registry
}

class Members implements MemberRegistry {
  readonly clusters = new Map<string, RegisteredCluster>()
  isRead = false
  readonly #manager: Manager
  readonly #options: MemberRegistryOptions
  readonly #listeners = new Set<(cluster: string) => void>()

  constructor(manager: Manager, options: MemberRegistryOptions) {
    this.#manager = manager
    this.#options = options
  }

  renew(): void {
    this.isRead = false
  }

  subscribe(listener: (cluster: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async follow(context: Context): Promise<void> {
    const desired = readRegistry(context.list(Secret, this.#options.namespace))
    // Whoever asked before this term's first read got no answer.
    const changed = new Set<string>(this.isRead ? [] : desired.keys())
    for (const [name, { registration, cluster }] of this.clusters) {
      const next = desired.get(name)
      const isSame = JSON.stringify(next) === JSON.stringify(registration)
      // Which addresses are denied may have changed with the term.
      const isJudgedAnew = !this.isRead && (typeof this.#parse(registration) === 'string') !== (cluster === undefined)
      if (isSame && !isJudgedAnew) continue
      changed.add(name)
      if (next !== undefined && cluster !== undefined && this.#reconfigure(next, cluster)) continue
      this.clusters.delete(name)
      await this.#manager.fleet.disengage(name)
    }
    for (const [name, registration] of desired) {
      if (this.clusters.has(name)) continue
      this.clusters.set(name, this.#engage(registration))
      changed.add(name)
    }
    this.isRead = true
    for (const name of changed) for (const listener of this.#listeners) listener(name)
  }

  /** False: the cluster has to be engaged anew. */
  #reconfigure(registration: Registration, cluster: Cluster): boolean {
    const config = this.#parse(registration)
    if (typeof config === 'string' || !this.#manager.fleet.reconfigure(registration.cluster, config)) return false
    this.clusters.set(registration.cluster, { registration, cluster, refusal: undefined })
    return true
  }

  #engage(registration: Registration): RegisteredCluster {
    const refuse = (why: string): RegisteredCluster => ({
      registration,
      cluster: undefined,
      refusal: warning('KubeconfigRefused', `Secret ${registration.namespace}/${registration.secret?.name}: ${why}`),
    })
    const config = this.#parse(registration)
    if (typeof config === 'string') return refuse(config)
    try {
      const cluster = this.#options.connect(config, registration.cluster)
      this.#options.guard(cluster)
      this.#manager.fleet.engage(cluster)
      return { registration, cluster, refusal: undefined }
    } catch (error) {
      return refuse(messageOf(error))
    }
  }

  /** Whoever may write Secrets chooses this text: only plain credentials are taken from it. */
  #parse({ kubeconfig, cluster }: Registration): ClusterConfig | string {
    const help = `; seamark cluster token ${cluster} writes one that is taken`
    if (kubeconfig === undefined) return `it has no key kubeconfig${help}`
    const { allowLoopback, denyAddresses } = this.#options
    try {
      return parseRemoteConfig(kubeconfig, { allowLoopback, deny: denyAddresses() })
    } catch (error) {
      const isAddress = error instanceof ConfigError && error.code === 'BAD_ADDRESS'
      return `${messageOf(error)}${isAddress ? '' : help}`
    }
  }
}
