/**
 * Watches the Secrets that DNSProviders refer to, one by one and by name: the process needs no right to list all Secrets of
 * a namespace. A change enqueues the providers that refer to the Secret.
 */
import { type Cluster, Secret } from '@seamark/kube'

export class SecretWatch {
  readonly #cluster: Pick<Cluster, 'informers'>
  /** Provider → Secret. */
  readonly #secretOf = new Map<string, string>()
  readonly #unsubscribes = new Map<string, () => void>()
  #enqueue: (keys: readonly string[]) => void = () => undefined

  constructor(cluster: Pick<Cluster, 'informers'>) {
    this.#cluster = cluster
  }

  start(enqueue: (keys: readonly string[]) => void): () => void {
    this.#enqueue = enqueue
    return () => {
      for (const unsubscribe of this.#unsubscribes.values()) unsubscribe()
      this.#unsubscribes.clear()
    }
  }

  /** The Secret that a provider refers to now; undefined: none. */
  follow(provider: string, secret: string | undefined): void {
    const before = this.#secretOf.get(provider)
    if (before === secret) return
    if (secret === undefined) this.#secretOf.delete(provider)
    else this.#secretOf.set(provider, secret)
    if (before !== undefined && ![...this.#secretOf.values()].includes(before)) {
      this.#unsubscribes.get(before)?.()
      this.#unsubscribes.delete(before)
    }
    if (secret !== undefined && !this.#unsubscribes.has(secret)) this.#unsubscribes.set(secret, this.#subscribe(secret))
  }

  #subscribe(secret: string): () => void {
    const [namespace = '', name = ''] = secret.split('/')
    const informer = this.#cluster.informers.informer(Secret, { namespace, fieldSelector: `metadata.name=${name}` })
    return informer.subscribe(() =>
      this.#enqueue([...this.#secretOf].flatMap(([provider, of]) => (of === secret ? [provider] : []))),
    )
  }
}
