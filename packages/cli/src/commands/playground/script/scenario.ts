/**
 * Plays a scenario on the fleet of the playground. Every step is printed; every expectation with the seconds that passed
 * since the last change, measured.
 */
import { Gateway, GatewayClass, HTTPRoute } from '@seamark/kube/gateway-api'
import { type Client, Ingress, IngressClass, messageOf, Namespace, poll, Service, systemClock } from '@seamark/kube'
import { keyOf, type Kind, type Obj } from '@seamark/kube/object'
import { Cluster, GlobalIngressPolicy, Route } from '@seamark/operator'
import { CommandError, EXIT } from '../../../command.ts'
import type { Printer } from '../printer.ts'
import { checkExpectations } from './expectation.ts'
import { FleetEnvironment, type FleetEnvironmentOptions } from './fleet-environment.ts'
import type { Scenario, Step } from './scenario-file.ts'
import { TrafficClient, type TrafficReport } from '../world/traffic.ts'

const KINDS: readonly Kind[] = [
  Cluster,
  Gateway,
  GatewayClass,
  GlobalIngressPolicy,
  HTTPRoute,
  Ingress,
  IngressClass,
  Namespace,
  Route,
  Service,
]
const POLL_MS = 25

/** Of all clients of a scenario. */
export interface RequestTotals {
  readonly sent: number
  readonly failed: number
}

/** In an environment of its own, which is removed afterwards. */
export async function playFleet(
  scenario: Scenario,
  printer: Pick<Printer, 'line'>,
  signal: AbortSignal,
  startThread?: FleetEnvironmentOptions['startThread'],
): Promise<RequestTotals> {
  const failed = new AbortController()
  let failure: unknown
  const environment = await FleetEnvironment.start({
    clusters: scenario.clusters,
    roots: scenario.roots,
    ...(startThread !== undefined && { startThread }),
    onFailure: (error) => {
      failure = error
      failed.abort()
    },
  })
  try {
    const totals = await playScenario(scenario, environment, printer, AbortSignal.any([signal, failed.signal]))
    if (failure !== undefined) throw new CommandError(`the manager ended: ${messageOf(failure)}`)
    return totals
  } finally {
    await environment.stop()
  }
}

async function playScenario(
  { steps }: Scenario,
  environment: FleetEnvironment,
  printer: Pick<Printer, 'line'>,
  signal: AbortSignal,
): Promise<RequestTotals> {
  const play = new Play(environment, printer)
  try {
    for (const step of steps) if (!signal.aborted) await play.step(step, signal)
  } finally {
    await play.end()
  }
  return play.totals
}

class Play {
  readonly #environment: FleetEnvironment
  readonly #printer: Pick<Printer, 'line'>
  #traffic: TrafficClient | undefined
  #isCounted = false
  totals: RequestTotals = { sent: 0, failed: 0 }
  /** Monotonic, ms, of the last step that changed something. */
  #changedMs = performance.now()

  constructor(environment: FleetEnvironment, printer: Pick<Printer, 'line'>) {
    this.#environment = environment
    this.#printer = printer
  }

  async step(step: Step, signal: AbortSignal): Promise<void> {
    if (step.do === 'expect') return this.#expect(step, signal)
    if (step.do === 'endRequests') return this.#endRequests()
    this.#changedMs = performance.now()
    this.#printer.line(await this.#carryOut(step))
  }

  async end(): Promise<void> {
    await this.#stopTraffic()
    this.#traffic = undefined
  }

  /** Its report can still be read. */
  async #stopTraffic(): Promise<TrafficReport | undefined> {
    const report = await this.#traffic?.stop()
    if (report === undefined) return undefined
    if (!this.#isCounted)
      this.totals = { sent: this.totals.sent + report.sent, failed: this.totals.failed + report.failed }
    this.#isCounted = true
    return report
  }

  /** What was done. */
  async #carryOut(step: Exclude<Step, { do: 'expect' | 'endRequests' }>): Promise<string> {
    const environment = this.#environment
    const { client } = environment
    switch (step.do) {
      case 'deploy': {
        const [namespace = '', name = ''] = step.service.split('/')
        const clusters = step.clusters ?? [...environment.members.keys()]
        if ((await client.find(Namespace, namespace)) === undefined)
          await client.create(Namespace, { metadata: { name: namespace } })
        for (const cluster of clusters) await environment.member(cluster).deploy(namespace, name)
        return `Service ${step.service} runs on ${clusters.join(', ')}`
      }
      case 'apply':
        return this.#apply(step.on === undefined ? client : environment.member(step.on).client, step)
      case 'delete':
        await client.delete(kindOf(step.kind), step.name)
        return `deleted ${step.kind} ${step.name}`
      case 'stop':
        await environment.member(step.cluster).stopPart(step.part)
        return `stopped ${describePart(step)}`
      case 'start':
        await environment.member(step.cluster).startPart(step.part)
        return `started ${describePart(step)}`
      case 'drain':
      case 'undrain':
        await client.patch(Cluster, step.cluster, 'merge', { spec: { drain: { enabled: step.do === 'drain' } } })
        return step.do === 'drain' ? `draining cluster ${step.cluster}` : `cluster ${step.cluster} takes leaves again`
      case 'restart':
        await environment.restartManager()
        return 'restarted the manager'
      case 'requests': {
        const { host, perSecond, tries } = step
        await this.end()
        const { resolver, dnsAddress: server, gatewayPort: port } = environment
        this.#isCounted = false
        this.#traffic = new TrafficClient({ host, perSecond, tries, resolver, server, port })
        return `a client requests ${host} ${perSecond} times a second${tries === 'all' ? ', and tries the next address when one refuses' : ''}`
      }
    }
  }

  async #apply(client: Client, { objects, on }: { objects: readonly Obj[]; on: string | undefined }): Promise<string> {
    for (const object of objects) {
      const complete = withGatewayPort(object, this.#environment.gatewayPort) as Obj
      await client.apply(kindOf(object.kind ?? ''), complete, { force: true })
    }
    const names = objects.map((object) => `${object.kind} ${keyOf(object)}`)
    return `applied ${names.join(', ')}${on === undefined ? '' : ` on ${on}`}`
  }

  async #expect({ expectations, withinMs }: Extract<Step, { do: 'expect' }>, signal: AbortSignal): Promise<void> {
    let last: readonly string[] = []
    const check = async () => {
      const { met, unmet } = await checkExpectations(expectations, this.#environment, this.#traffic?.report())
      last = unmet
      return unmet.length === 0 ? met : undefined
    }
    const met = await poll(check, { clock: systemClock, intervalMs: POLL_MS, timeoutMs: withinMs, signal })
    if (met === undefined && !signal.aborted)
      throw new CommandError(`not within ${withinMs / 1000} s: ${last.join('; ')}`, EXIT.timeout)
    const seconds = (performance.now() - this.#changedMs) / 1000
    for (const text of met ?? []) this.#printer.line(`after ${seconds.toFixed(1)} s: ${text}`)
  }

  async #endRequests(): Promise<void> {
    const report = await this.#stopTraffic()
    if (report === undefined) return
    const shares = [...report.answeredBy]
      .map(([name, count]) => `${name} ${count}`)
      .sort()
      .join(', ')
    this.#printer.line(`the client sent ${report.sent} requests: ${report.failed} failed; answered by ${shares}`)
    for (const failure of report.failures) this.#printer.line(`failed: ${failure}`)
  }
}

/** `GATEWAY_PORT` in an object is the port of the gateways, which differs from run to run. */
function withGatewayPort(value: unknown, port: number): unknown {
  if (value === 'GATEWAY_PORT') return port
  if (Array.isArray(value)) return value.map((item) => withGatewayPort(item, port))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withGatewayPort(item, port)]))
}

function describePart({ cluster, part }: { readonly cluster: string; readonly part: string }): string {
  switch (part) {
    case 'api':
      return `the API server of cluster ${cluster}`
    case 'cluster':
      return `cluster ${cluster}: its API server and its gateway`
    default:
      return `the ${part} of cluster ${cluster}`
  }
}

function kindOf(name: string): Kind {
  const found = KINDS.find(({ kind }) => kind === name)
  if (found === undefined) throw new CommandError(`a scenario cannot have objects of kind ${name}`, EXIT.usage)
  return found
}
