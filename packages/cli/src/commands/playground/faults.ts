/** What breaks and mends the world of a running playground: the commands of a second terminal, and the tour. */
import { poll, systemClock } from '@seamark/kube'
import { Cluster } from '@seamark/operator'
import { CommandError, EXIT } from '../../command.ts'
import { askForPass } from '../records/approve.ts'
import type { ControlRequest, PlaygroundStatus } from './control/request.ts'
import { hostCommand } from './printed-commands.ts'
import type { Part } from './world/local-cluster.ts'
import { MANAGER_NAMESPACE } from './world/members.ts'
import { deleteMostSources, firstAnswers, restoreSources, SHOP } from './world/objects.ts'
import { TrafficClient } from './world/traffic.ts'
import type { World } from './world/world.ts'
import { readClusterStates } from './page-state.ts'

const POLL_MS = 50
const HELD_WITHIN_MS = 30_000
const RESET_WITHIN_MS = 60_000

/** Of a fault: what was done, and where it is seen. */
export interface Done {
  readonly text: string
  readonly value?: unknown
}

export class Faults {
  readonly #world: World
  readonly #signal: AbortSignal
  #traffic: { readonly host: string; readonly perSecond: number; readonly client: TrafficClient } | undefined

  /** @param signal aborts what waits */
  constructor(world: World, signal: AbortSignal) {
    this.#world = world
    this.#signal = signal
  }

  async carryOut(request: ControlRequest): Promise<Done> {
    switch (request.do) {
      case 'stop':
      case 'start':
        return this.#say(await this[request.do](request.cluster, request.part))
      case 'slow':
        return this.#say(this.slow(request.cluster, request.delayMs))
      case 'provider':
        return this.#say(await this.setProvider(request.state))
      case 'bad-release': {
        const { text, host } = await this.badRelease()
        return this.#say(text, host)
      }
      case 'traffic':
        return this.#say(await this.setTraffic(request.host, request.perSecond), request.host)
      case 'reset':
        return { text: await this.reset() }
      case 'status':
        return this.#status()
    }
  }

  async stop(cluster: string, part: Part): Promise<string> {
    await this.#world.member(cluster).stopPart(part)
    return `stopped ${describePart(cluster, part)}`
  }

  async start(cluster: string, part: Part): Promise<string> {
    await this.#world.member(cluster).startPart(part)
    return `started ${describePart(cluster, part)}`
  }

  slow(cluster: string, delayMs: number): string {
    this.#world.member(cluster).delayMs = delayMs
    return delayMs === 0
      ? `the backends of ${cluster} answer at once`
      : `the backends of ${cluster} answer after ${delayMs} ms; a health check waits 1000 ms`
  }

  async setProvider(state: 'down' | 'up'): Promise<string> {
    if (state === 'down') await this.#world.names.closeDoor()
    else await this.#world.names.openDoor()
    // The manager notices it at the next change of a record; here it looks at once.
    await askForPass(this.#world, MANAGER_NAMESPACE)
    return state === 'down'
      ? 'the DNS provider takes no changes: what it has is answered, and what changes waits'
      : 'the DNS provider takes changes again'
  }

  /** Until the breaker holds the deletions. */
  async badRelease(): Promise<{ readonly text: string; readonly code: string; readonly host: string }> {
    const { hub, held, names } = this.#world
    const before = held.length
    const { gone, total, hosts } = await deleteMostSources(hub)
    if (hosts.length === 0)
      throw new CommandError('the sources are gone already; seamark playground reset brings them back')
    const isHeld = (host: string) => held.slice(before).find(({ name }) => name === `${host}.`)
    const findLast = () => (hosts.every(isHeld) ? isHeld(hosts.at(-1) ?? '') : undefined)
    const limits = { clock: systemClock, intervalMs: POLL_MS, timeoutMs: HELD_WITHIN_MS, signal: this.#signal }
    const notice = await poll(findLast, limits)
    const [host = ''] = hosts
    if (notice === undefined)
      throw new CommandError(
        `${gone} of ${total} sources were deleted, and not all was held in ${HELD_WITHIN_MS / 1000} s`,
      )
    const answer = (await names.ask(host)).join(', ')
    return {
      text: `deleted ${gone} of ${total} sources: held, ${notice.code}; ${host} still answers ${answer}`,
      code: notice.code,
      host,
    }
  }

  async setTraffic(host: string, perSecond: number): Promise<string> {
    const ended = await this.endTraffic()
    if (perSecond === 0) return ended ?? 'no client sends requests'
    const { hub } = this.#world
    const { resolver, address: server } = this.#world.names
    const client = new TrafficClient({ host, perSecond, tries: 'all', resolver, server, port: hub.port })
    this.#traffic = { host, perSecond, client }
    return `a client requests ${host} ${perSecond} times a second; --rate 0 ends it`
  }

  /** What the client saw. */
  async endTraffic(): Promise<string | undefined> {
    const traffic = this.#traffic
    this.#traffic = undefined
    if (traffic === undefined) return undefined
    const report = await traffic.client.stop()
    return `the client of ${traffic.host} sent ${report.sent} requests: ${report.failed} failed`
  }

  /** Everything as it was at first, and answered so. */
  async reset(): Promise<string> {
    const { client, members } = this.#world
    await this.endTraffic()
    if (!this.#world.names.isDoorOpen) await this.setProvider('up')
    for (const member of members.values()) {
      member.delayMs = 0
      for (const part of ['cluster', 'backends'] as const) await member.startPart(part)
    }
    for (const { metadata, spec } of (await client.list(Cluster)).items)
      if (spec.drain?.enabled === true)
        await client.patch(Cluster, metadata.name ?? '', 'merge', {
          spec: { drain: { enabled: false, deadline: null } },
        })
    const restored = await restoreSources(client)
    const left = await this.untilBase(RESET_WITHIN_MS)
    const sources = restored.length === 0 ? '' : ` ${restored.length} sources are back,`
    if (left.length > 0)
      throw new CommandError(
        `everything is started,${sources} and not yet as before after ${RESET_WITHIN_MS / 1000} s: ${left.join('; ')}`,
        EXIT.timeout,
      )
    return `everything is started,${sources} every host answers as at first\n`
  }

  /** What is not answered as at first, after at most this time. */
  async untilBase(timeoutMs: number): Promise<readonly string[]> {
    const wanted = firstAnswers(this.#world)
    let left: readonly string[] = []
    const check = () => {
      const now = new Map(this.#world.names.records().map(({ name, type, values }) => [`${name} ${type}`, values]))
      left = [...wanted]
        .filter(([host, addresses]) => now.get(`${host}. A`)?.toSorted().join() !== addresses.join())
        .map(([host]) => host)
      return left.length === 0 ? true : undefined
    }
    await poll(check, { clock: systemClock, intervalMs: POLL_MS, timeoutMs, signal: this.#signal })
    return left
  }

  /** With what to look at next. */
  #say(text: string, host = SHOP): Done {
    const { page } = this.#world
    const lines = [`${page}hosts/${host}`, ...hostCommand(this.#world, host)]
    return { text: `${text}\nLook at:\n${lines.map((line) => `  ${line}\n`).join('')}` }
  }

  async #status(): Promise<Done> {
    const { page, kubeconfigPath: kubeconfig, dns, members, names } = this.#world
    const states = await readClusterStates(this.#world)
    const clusters = [...members.values()].map(({ name, api, address, port }) => ({
      name,
      api: api.access.url,
      gateway: `${address}:${port}`,
      state: states.get(name) ?? 'Unreachable',
    }))
    const value: PlaygroundStatus = { page, kubeconfig, dns, clusters }
    const faults = [...members.values()].flatMap(({ name, stoppedParts, delayMs }) => [
      ...stoppedParts.map((part) => `${describePart(name, part)} is stopped`),
      ...(delayMs === 0 ? [] : [`the backends of ${name} answer after ${delayMs} ms`]),
    ])
    if (!names.isDoorOpen) faults.push('the DNS provider takes no changes')
    if (this.#traffic !== undefined) {
      const { sent, failed } = this.#traffic.client.report()
      faults.push(
        `a client requests ${this.#traffic.host} ${this.#traffic.perSecond} times a second: ${sent} sent, ${failed} failed`,
      )
    }
    return { text: faults.map((line) => `${line}\n`).join(''), value }
  }
}

function describePart(cluster: string, part: Part): string {
  switch (part) {
    case 'api':
      return `the API server of ${cluster}`
    case 'gateway':
      return `the gateway of ${cluster}`
    case 'backends':
      return `the backends of ${cluster}`
    case 'cluster':
      return `${cluster}: its API server and its gateway`
  }
}
