/**
 * Puts wildcard into a manager: follows the Secrets that register clusters, keeps a watch of the nodes of each, and runs the
 * reconciler of each cluster when something about it changes. One worker: there are few clusters, and each is quick.
 */
import {
  type Client,
  type Clock,
  type connect,
  createQueue,
  type Informer,
  type Manager,
  messageOf,
  type Queue,
  Secret,
} from '@seamark/kube'
import { type Immutable, keyOf } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { type Finding, warning } from '../finding.ts'
import type { ProductMetrics } from '../metrics.ts'
import { WILDCARD_FIELD_MANAGER } from '../process/field-manager.ts'
import { joinCluster, type Member, watchNodes } from './member.ts'
import type { WildcardOptions } from './options.ts'
import { type WildcardWriter, WildcardReconciler } from './reconciler.ts'
import { readRegistry, type Registration } from './registry.ts'
import { CLUSTER_LABEL, isAsWanted } from './wildcard-endpoint.ts'

export interface WildcardSetUp {
  readonly options: WildcardOptions
  readonly metrics: ProductMetrics
  readonly namespace: string
  /** False in observe mode and while writing is paused. */
  readonly isWriting: () => boolean
  /** Resolves once it is known whether writing is paused; undefined when it is known. */
  readonly untilPauseIsKnown: (running: { readonly signal: AbortSignal }) => Promise<void> | undefined
  readonly clock: Clock
  readonly allowLoopback: boolean
  readonly denyAddresses: readonly string[]
  readonly connect: typeof connect
  /** Shared with publish and records. */
  readonly endpoints: Informer<DNSEndpoint>
}

const IDLE_RETRY_MS = 10_000

export function setUpWildcard(manager: Manager, setUp: WildcardSetUp): void {
  const { informers } = manager.cluster
  const { namespace } = setUp
  informers.informer(Secret, { namespace, labelSelector: CLUSTER_LABEL })
  manager.add('wildcard', async ({ signal, client }) => new WildcardLoop(manager, setUp, client).run(signal), {
    leader: true,
  })
}

/** The local cluster stands in the same table as the registered ones. */
type Entry = { readonly registration: Registration; member: Member | undefined; fault: Finding | undefined }

class WildcardLoop {
  readonly #manager: Manager
  readonly #setUp: WildcardSetUp
  readonly #client: Client
  readonly #reconciler: WildcardReconciler
  readonly #entries = new Map<string, Entry>()
  readonly #told = new Map<string, string>()
  #queue: Queue | undefined

  constructor(manager: Manager, setUp: WildcardSetUp, client: Client) {
    this.#manager = manager
    this.#setUp = setUp
    this.#client = client
    this.#reconciler = new WildcardReconciler(setUp.options, setUp.clock)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { informers } = this.#manager.cluster
    const { namespace, clock, endpoints } = this.#setUp
    let wake = (): void => undefined
    const queue = createQueue({ clock, onReady: () => wake() })
    this.#queue = queue
    const secrets = informers.informer(Secret, { namespace, labelSelector: CLUSTER_LABEL })
    await Promise.all([secrets.synced(signal), endpoints.synced(signal)]).catch(() => undefined)
    const unsubscribes = signal.aborted
      ? []
      : [
          secrets.subscribe(() => queue.add('registry')),
          endpoints.subscribe(({ object }) => {
            const cluster = object.metadata.labels?.[CLUSTER_LABEL]
            if (cluster !== undefined) queue.add(`cluster ${cluster}`)
          }),
        ]
    queue.add('registry')
    while (!signal.aborted) {
      const key = queue.take()
      if (key === undefined) {
        await new Promise<void>((resolve) => {
          const finish = (): void => {
            signal.removeEventListener('abort', finish)
            resolve()
          }
          wake = finish
          signal.addEventListener('abort', finish, { once: true })
        })
        continue
      }
      await this.#work(queue, key, signal)
    }
    for (const unsubscribe of unsubscribes) unsubscribe()
    queue.close()
    await Promise.all([...this.#entries.values()].map(async ({ member }) => member?.stop()))
  }

  async #work(queue: Queue, key: string, signal: AbortSignal): Promise<void> {
    try {
      const afterMs =
        key === 'registry' ? await this.#follow() : await this.#reconcile(key.slice('cluster '.length), signal)
      queue.forget(key)
      if (afterMs !== undefined) queue.requeue(key, afterMs)
    } catch (error) {
      if (!signal.aborted) this.#manager.log.error({ err: error, key, retryMs: queue.retry(key) }, 'wildcard failed')
    }
    queue.done(key)
  }

  /** Joins what was registered, leaves what was not any more. A changed Secret is joined anew. */
  async #follow(): Promise<undefined> {
    const { namespace, options } = this.#setUp
    const wanted = readRegistry(this.#manager.cluster.informers.list(Secret, namespace))
    if (options.localCluster !== '' && !wanted.has(options.localCluster)) {
      wanted.set(options.localCluster, {
        cluster: options.localCluster,
        secret: { name: '', uid: '' },
        namespace,
        zone: '',
        kubeconfig: undefined,
      })
    }
    for (const [cluster, { registration, member }] of this.#entries) {
      if (JSON.stringify(wanted.get(cluster)) === JSON.stringify(registration)) continue
      this.#entries.delete(cluster)
      this.#setUp.metrics.wildcardTargets(cluster, undefined)
      if (!wanted.has(cluster)) this.#reconciler.forget(cluster)
      await member?.stop()
    }
    for (const [cluster, registration] of wanted) {
      if (this.#entries.has(cluster)) continue
      this.#entries.set(cluster, this.#join(registration))
      this.#queue?.add(`cluster ${cluster}`)
    }
    return undefined
  }

  #join(registration: Registration): Entry {
    const { cluster, kubeconfig, secret } = registration
    const onChange = (): void => this.#queue?.add(`cluster ${cluster}`)
    if (secret.name === '') {
      return {
        registration,
        member: watchNodes(this.#manager.cluster, onChange, async () => undefined, true),
        fault: undefined,
      }
    }
    if (kubeconfig === undefined) {
      return {
        registration,
        member: undefined,
        fault: warning('KubeconfigRefused', `Secret ${secret.name} has no key kubeconfig`),
      }
    }
    const { allowLoopback, denyAddresses: deny, clock, connect: reach } = this.#setUp
    const joined = joinCluster(kubeconfig, { name: cluster, onChange, clock, allowLoopback, deny, connect: reach })
    if (joined.ok) return { registration, member: joined.member, fault: undefined }
    return {
      registration,
      member: undefined,
      fault: warning('KubeconfigRefused', `Secret ${secret.name}: ${joined.message}`),
    }
  }

  async #reconcile(cluster: string, signal: AbortSignal): Promise<number | undefined> {
    await this.#setUp.untilPauseIsKnown({ signal })
    const entry = this.#entries.get(cluster)
    if (entry === undefined) return undefined
    const { registration, member, fault } = entry
    const place = {
      cluster,
      namespace: registration.namespace,
      ...(registration.secret.name !== '' && { secret: registration.secret }),
    }
    const zone = registration.zone === '' ? this.#setUp.options.zone : registration.zone
    const state = { place, zone, member, ...(fault !== undefined && { fault }) }
    const result = await this.#reconciler.reconcile(state, this.#hands(signal), signal)
    this.#setUp.metrics.wildcardTargets(cluster, result.targets.length)
    this.#tell(cluster, result.findings)
    // What was decided while nothing may be written is decided again: the end of a pause wakes nobody.
    return this.#setUp.isWriting() ? result.afterMs : Math.min(result.afterMs ?? IDLE_RETRY_MS, IDLE_RETRY_MS)
  }

  /** A wildcard without a living owner would be collected, made again, and collected again until the watch tells. */
  async #isRegistered(
    { metadata: { namespace, ownerReferences } }: DNSEndpoint,
    signal: AbortSignal,
  ): Promise<boolean> {
    const owner = ownerReferences?.find((reference) => reference.controller === true)
    if (owner === undefined) return true
    const secret = await this.#client.find(Secret, `${namespace}/${owner.name}`, { signal })
    return secret !== undefined && secret.metadata.uid === owner.uid
  }

  #tell(cluster: string, findings: readonly Finding[]): void {
    const text = findings.map((finding) => finding.message).join('; ')
    if (this.#told.get(cluster) === text) return
    this.#told.set(cluster, text)
    for (const { reason, message } of findings) this.#manager.log.warn({ cluster, reason }, message)
  }

  #hands(signal: AbortSignal): WildcardWriter {
    const { informers } = this.#manager.cluster
    return {
      find: (key) => informers.get(DNSEndpoint, key),
      apply: async (object) => {
        const live = informers.get(DNSEndpoint, keyOf(object))
        if (isAsWanted(live, object) || !this.#setUp.isWriting()) return false
        if (live === undefined && !(await this.#isRegistered(object, signal))) return false
        await this.#client.apply(DNSEndpoint, object, { fieldManager: WILDCARD_FIELD_MANAGER, force: true, signal })
        return true
      },
      delete: async (object: Immutable<DNSEndpoint>) => {
        if (!this.#setUp.isWriting()) return
        const { uid, resourceVersion } = object.metadata
        const precondition = {
          ...(uid !== undefined && { uid }),
          ...(resourceVersion !== undefined && { resourceVersion }),
        }
        await this.#client.delete(DNSEndpoint, keyOf(object), { precondition, signal }).catch((error: unknown) => {
          this.#manager.log.warn({ error: messageOf(error) }, 'wildcard not deleted')
        })
      },
    }
  }
}
