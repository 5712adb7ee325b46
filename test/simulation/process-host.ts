/**
 * Runs the program under test as a process that can die: starts it, kills it at a planned write, starts it again a
 * second later, and stands between it and the server.
 *
 * Guarantees: a dead process does nothing more: its requests never answer, its timers never run. Latency of requests
 * and answers is drawn from the seed, which is how one seed schedules differently from another.
 */
import type { ApiServer, InProcessFetch } from '@seamark/apiserver'
import type { Plan } from './plan.ts'
import type { Controller } from './scenario.ts'
import type { VirtualClock } from './virtual-clock.ts'

const restartMs = 1_000
const maxLatencyMs = 20
const stormMs = 5 * 60_000
const stormStartMs = 5 * 60_000

export interface HostOptions {
  readonly server: ApiServer
  readonly clock: VirtualClock
  readonly random: () => number
  readonly user: string
  readonly controller: Controller
  readonly plans: readonly Plan[]
}

export class ProcessHost {
  readonly #options: HostOptions
  readonly #fetch: InProcessFetch
  #life = new AbortController()
  /** While set, lists show the state of this revision. */
  #viewRevision: number | undefined
  sentWrites = 0
  lists = 0

  constructor(options: HostOptions) {
    this.#options = options
    this.#fetch = options.server.fetchAs({ name: options.user, groups: ['system:masters'] })
  }

  start(): void {
    const { clock, random, controller, plans, server, user } = this.#options
    const life = (this.#life = new AbortController())
    if (plans.some((plan) => plan.kind === 'storm')) {
      clock.after(stormStartMs, () => {
        clock.after(stormMs, server.faults.fail({ user }, { status: 500, probability: 0.5 }))
        server.faults.cut({ user }, 'break')
      })
    }
    const own = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (ms: number, task: () => void) => clock.after(ms, () => (life.signal.aborted ? undefined : task())),
    }
    const fetch: InProcessFetch = async (input, init) => this.#send(life, input, init)
    controller({ fetch, clock: own, random, signal: life.signal }).catch((error: unknown) => {
      // A program that ends by itself is started again, as a kubelet would.
      if (!life.signal.aborted) this.restart(undefined)
      else if (!(error instanceof Error)) throw error
    })
  }

  /** Kills the process; the next one begins a second later, seeing lists as of `viewRevision` if given. */
  restart(viewRevision: number | undefined): void {
    this.#life.abort()
    this.#viewRevision = viewRevision ?? this.#viewRevision
    this.#options.clock.after(restartMs, () => this.start())
  }

  freshen(): void {
    this.#viewRevision = undefined
  }

  stop(): void {
    this.#life.abort()
  }

  async #send(life: AbortController, input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const { clock } = this.#options
    const url = new URL(input instanceof Request ? input.url : input, 'http://in-process')
    const method = init.method ?? (input instanceof Request ? input.method : 'GET')
    await this.#untilArrived(life)
    const write = method === 'GET' ? 0 : (this.sentWrites += 1)
    const crash = this.#options.plans.find((plan) => plan.kind === 'crash' && plan.at === write)
    if (crash?.kind === 'crash' && crash.point === 'before') return this.#die()
    this.#layRequestFaults(write, url, method)
    clock.activity += 1
    const signal = init.signal == null ? life.signal : AbortSignal.any([init.signal, life.signal])
    const response = await this.#fetch(url, { ...init, method, signal })
    clock.activity += 1
    if (crash?.kind === 'crash' && crash.point === 'unanswered') return this.#die()
    await this.#untilArrived(life)
    if (crash?.kind === 'crash') clock.after(0, () => this.restart(undefined))
    return response
  }

  async #untilArrived(life: AbortController): Promise<void> {
    const { clock, random } = this.#options
    if (life.signal.aborted) await never()
    const latencyMs = Math.max(0, Math.floor((random() - 0.5) * 2 * maxLatencyMs))
    if (latencyMs > 0) await clock.sleep(latencyMs)
    if (life.signal.aborted) await never()
  }

  async #die(): Promise<never> {
    this.restart(undefined)
    return never()
  }

  #layRequestFaults(write: number, url: URL, method: string): void {
    const { server, plans, user } = this.#options
    const isList = method === 'GET' && !url.searchParams.has('watch') && isCollection(url.pathname)
    if (isList) {
      this.lists += 1
      if (this.#viewRevision !== undefined) {
        url.searchParams.set('resourceVersion', String(this.#viewRevision))
        url.searchParams.set('resourceVersionMatch', 'Exact')
      }
    }
    for (const plan of plans) {
      if (plan.kind === 'refuse' && plan.at === write) {
        server.faults.fail({ user, verb: ['create', 'update', 'patch', 'delete'] }, { status: plan.status, times: 1 })
      } else if (isList && plan.kind === 'emptyList' && plan.at === this.lists) {
        server.faults.shorten({ user, verb: 'list' }, 0, 1)
      } else if (isList && plan.kind === 'shortList' && plan.at === this.lists) {
        server.faults.shorten({ user, verb: 'list' }, (count) => Math.max(0, count - 1), 1)
      }
    }
  }
}

/** `/api/v1/configmaps`, `/apis/g/v1/namespaces/x/things`; not `…/things/name`. */
function isCollection(path: string): boolean {
  const parts = path.split('/').filter((part) => part !== '')
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3)
  const scoped = rest[0] === 'namespaces' && rest.length > 2 ? rest.slice(2) : rest
  return scoped.length === 1
}

async function never(): Promise<never> {
  return new Promise<never>(() => undefined)
}
