/**
 * Runs the program under test as a process that can die: starts it, kills it at a planned write, starts it again a
 * second later, and is between it and the server.
 *
 * Guarantees: a dead process does nothing more: no request of it reaches the server, its timers never run. Latency of requests
 * and answers is drawn from the seed, which is how one seed schedules differently from another.
 */
import type { ApiServer, InProcessFetch } from '@seamark/apiserver'
import { messageOf } from '@seamark/kube'
import type { Plan } from './plan.ts'
import type { Controller, ExternalCall } from './scenario.ts'
import type { VirtualClock } from './virtual-clock.ts'

const restartMs = 1_000
const maxLatencyMs = 20
const stormMs = 5 * 60_000
const emptiedMs = 60_000
const stormStartMs = 5 * 60_000

/** How long a process may take to end when asked. */
const stopMs = 10_000
const stopPollMs = 20

/** Counts over all processes of a run. */
export interface Meter {
  sentWrites: number
  lists: number
  /** Paths of the writes that are under way. */
  readonly writing: Map<string, number>
  /** Errors of processes that ended unexpectedly. */
  readonly ends: string[]
  /** Every request in the order in which it reached the server: virtual milliseconds, method and path. */
  readonly requests: string[]
}

export interface HostOptions {
  readonly server: ApiServer
  readonly clock: VirtualClock
  readonly random: () => number
  readonly user: string
  readonly controller: Controller
  readonly plans: readonly Plan[]
  readonly meter: Meter
  /** Else the server refuses `sendInitialEvents`, and the present state comes as lists. */
  readonly hasWatchList: boolean
}

export class ProcessHost {
  readonly #options: HostOptions
  readonly #fetch: InProcessFetch
  #life = new AbortController()
  readonly #stopping = new AbortController()
  #hasEnded = false
  /** While set, lists show the state of this revision. */
  #viewRevision: number | undefined
  /** The collection whose lists are empty until then, in ms of the clock. */
  #emptied: { readonly path: string; readonly untilMs: number } | undefined

  constructor(options: HostOptions) {
    this.#options = options
    this.#fetch = options.server.fetchAs({ name: options.user, groups: ['system:masters'] })
  }

  start(): void {
    const { clock, random, controller, plans, server, user } = this.#options
    if (this.#stopping.signal.aborted) return
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
    const signal = AbortSignal.any([life.signal, this.#stopping.signal])
    const call: ExternalCall = async ({ isWrite, send }) => this.#call(life, isWrite, send)
    this.#follow(controller({ fetch, call, clock: own, random, signal }), life).catch(() => undefined)
  }

  /** A program that ends by itself is started again, as a kubelet would. */
  async #follow(running: Promise<void>, life: AbortController): Promise<void> {
    await running.catch((error: unknown) => {
      if (!life.signal.aborted) this.#options.meter.ends.push(messageOf(error))
    })
    if (life.signal.aborted) return
    if (this.#stopping.signal.aborted) this.#hasEnded = true
    else this.restart(undefined)
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

  /** Asks the process to end and lets time pass until it has. */
  async stop(): Promise<void> {
    const { clock } = this.#options
    this.#stopping.abort()
    for (let waitedMs = 0; !this.#hasEnded && !this.#life.signal.aborted && waitedMs < stopMs; waitedMs += stopPollMs)
      await clock.advance(stopPollMs)
    this.kill()
  }

  kill(): void {
    this.#stopping.abort()
    this.#life.abort()
  }

  async #send(life: AbortController, input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const { clock } = this.#options
    const url = new URL(input instanceof Request ? input.url : input, 'http://in-process')
    const method = init.method ?? (input instanceof Request ? input.method : 'GET')
    await this.#untilArrived(life)
    const { meter } = this.#options
    const write = method === 'GET' ? 0 : (meter.sentWrites += 1)
    meter.requests.push(`${clock.monotonic()} ${method} ${url.pathname}${url.search}`)
    const crash = this.#options.plans.find((plan) => plan.kind === 'crash' && plan.at === write)
    if (crash?.kind === 'crash' && crash.point === 'before') return this.#die()
    if (this.#isRefusedStream(url)) return Response.json({ kind: 'Status', code: 422 }, { status: 422 })
    this.#layRequestFaults(write, url, method)
    clock.activity += 1
    const signal = init.signal == null ? life.signal : AbortSignal.any([init.signal, life.signal])
    const response = await this.#count(write, url.pathname, async () => this.#fetch(url, { ...init, method, signal }))
    clock.activity += 1
    if (crash?.kind === 'crash' && crash.point === 'unanswered') return this.#die()
    await this.#untilArrived(life)
    if (crash?.kind === 'crash') clock.after(0, () => this.restart(undefined))
    return response
  }

  async #call<T>(life: AbortController, isWrite: boolean, send: () => Promise<T>): Promise<T> {
    const { clock, meter, plans } = this.#options
    await this.#untilArrived(life)
    const write = isWrite ? (meter.sentWrites += 1) : 0
    const crash = plans.find((plan) => plan.kind === 'crash' && plan.at === write)
    if (crash?.kind === 'crash' && crash.point === 'before') return this.#die()
    clock.activity += 1
    const answer = await send()
    clock.activity += 1
    if (crash?.kind === 'crash' && crash.point === 'unanswered') return this.#die()
    await this.#untilArrived(life)
    if (crash?.kind === 'crash') clock.after(0, () => this.restart(undefined))
    return answer
  }

  async #count<T>(write: number, path: string, send: () => Promise<T>): Promise<T> {
    if (write === 0) return send()
    const { writing } = this.#options.meter
    writing.set(path, (writing.get(path) ?? 0) + 1)
    try {
      return await send()
    } finally {
      writing.set(path, (writing.get(path) ?? 1) - 1)
    }
  }

  async #untilArrived(life: AbortController): Promise<void> {
    const { clock, random } = this.#options
    life.signal.throwIfAborted()
    const latencyMs = Math.max(0, Math.floor((random() - 0.5) * 2 * maxLatencyMs))
    if (latencyMs > 0) await clock.sleep(latencyMs)
    life.signal.throwIfAborted()
  }

  async #die(): Promise<never> {
    this.restart(undefined)
    throw new TypeError('the process is dead')
  }

  /** What came from an old view has to come as a list, which can be asked for an old revision. */
  #isRefusedStream(url: URL): boolean {
    const isAsked = url.searchParams.has('sendInitialEvents')
    return isAsked && (!this.#options.hasWatchList || this.#viewRevision !== undefined)
  }

  #layRequestFaults(write: number, url: URL, method: string): void {
    const { server, clock, plans, user, meter } = this.#options
    const [, cluster = ''] = /^\/clusters\/([^/]+)\//.exec(url.pathname) ?? []
    const { faults } = server.clusters.get(cluster) ?? server
    const isList = method === 'GET' && !url.searchParams.has('watch') && isCollection(url.pathname)
    if (isList) {
      meter.lists += 1
      if (this.#viewRevision !== undefined && cluster === '') {
        url.searchParams.set('resourceVersion', String(this.#viewRevision))
        url.searchParams.set('resourceVersionMatch', 'Exact')
      }
    }
    if (isList && plans.some((plan) => plan.kind === 'emptyLists' && plan.at === meter.lists))
      this.#emptied = { path: url.pathname, untilMs: clock.monotonic() + emptiedMs }
    if (isList && this.#emptied?.path === url.pathname && clock.monotonic() < this.#emptied.untilMs)
      faults.shorten({ user, verb: 'list' }, 0, 1)
    for (const plan of plans) {
      if (plan.kind === 'refuse' && plan.at === write) {
        faults.fail({ user, verb: ['create', 'update', 'patch', 'delete'] }, { status: plan.status, times: 1 })
      } else if (isList && plan.kind === 'emptyList' && plan.at === meter.lists) {
        faults.shorten({ user, verb: 'list' }, 0, 1)
      } else if (isList && plan.kind === 'shortList' && plan.at === meter.lists) {
        faults.shorten({ user, verb: 'list' }, (count) => Math.max(0, count - 1), 1)
      }
    }
  }
}

/** `/api/v1/configmaps`, `/apis/g/v1/namespaces/x/things`, also of a further cluster; not `…/things/name`. */
function isCollection(path: string): boolean {
  const parts = path
    .replace(/^\/clusters\/[^/]+/, '')
    .split('/')
    .filter((part) => part !== '')
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3)
  const scoped = rest[0] === 'namespaces' && rest.length > 2 ? rest.slice(2) : rest
  return scoped.length === 1
}
