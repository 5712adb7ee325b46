/**
 * The rolling update of a Deployment with maxUnavailable 0 and maxSurge 1, and the Services before it: a new connection goes to a
 * Pod that is ready and not being ended. That a Pod is being ended is known everywhere only after a while; until then it still gets
 * new connections.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { NetConnectOpts } from 'node:net'
import type { Pod } from './pod.ts'

/** Until every load balancer and kube-proxy knows. */
const PROPAGATION_MS = 700
const PROBE_MS = 100
/** Only a failure takes this long. */
const LIMIT_MS = 60_000

export class Rollout {
  readonly #start: () => Promise<Pod>
  readonly #endpoints: Pod[] = []
  readonly #ending = new Set<Promise<void>>()
  #turn = 0

  constructor(start: () => Promise<Pod>) {
    this.#start = start
  }

  async scale(replicas: number): Promise<void> {
    await Promise.all(Array.from({ length: replicas }, async () => this.#endpoints.push(await this.#begun())))
  }

  /** Where a new connection to the port goes. */
  pick(port: string): NetConnectOpts {
    const { length } = this.#endpoints
    const found = this.#endpoints[this.#turn++ % length]?.ports.get(port)
    if (found === undefined) throw new Error(`none of ${length} ready Pods has port ${port}`)
    return found
  }

  /** Replaces every Pod. */
  async roll(): Promise<void> {
    const before = this.#endpoints.slice()
    for (const old of before) {
      this.#endpoints.push(await this.#begun())
      this.#endBegins(old)
    }
    await Promise.all(this.#ending)
  }

  async end(): Promise<void> {
    for (const pod of this.#endpoints.splice(0)) this.#endBegins(pod)
    await Promise.all(this.#ending)
  }

  async #begun(): Promise<Pod> {
    const pod = await this.#start()
    const deadline = Date.now() + LIMIT_MS
    for (;;) {
      const why = await pod.unready()
      if (why === undefined) return pod
      if (Date.now() > deadline) throw new Error(`a Pod is not ready: ${why}`)
      await sleep(PROBE_MS)
    }
  }

  /** The Pods of the next step do not wait for the end of this one. */
  #endBegins(pod: Pod): void {
    const ending = (async () => {
      await Promise.all([
        pod.preStop(),
        sleep(PROPAGATION_MS).then(() => {
          const at = this.#endpoints.indexOf(pod)
          if (at >= 0) this.#endpoints.splice(at, 1)
        }),
      ])
      await pod.end()
    })()
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }
}
