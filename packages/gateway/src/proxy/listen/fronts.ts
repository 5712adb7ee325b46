/**
 * The servers of the listeners. Main listeners are opened once and stay; listeners of other ports of Gateways come and go with
 * the configuration. One that cannot be bound is reported and tried again.
 *
 * Guarantees: a listener that is removed accepts no new connection and closes no established one.
 */
import type { AddressInfo, Server } from 'node:net'
import { messageOf, poll, type Clock } from '@seamark/kube'
import { formatAddress, type ListenAddress, type ListenerId, type PortFaults } from '../../ir/listen-addresses.ts'

export interface FrontsOptions {
  readonly create: (id: ListenerId) => Server
  readonly addressOf: (id: ListenerId) => ListenAddress | undefined
  readonly clock: Clock
  /** Called when the listeners that cannot be bound, or the reasons, change. */
  readonly onFaults: (faults: PortFaults) => void
}

interface Front {
  readonly server: Server
  readonly ending: AbortController
  /** Settled after the first attempt to bind. */
  readonly tried: Promise<void>
  address?: ListenAddress
}

/** Between attempts to bind an address that is in use. */
const RETRY_MS = 2_000

export class Fronts {
  readonly #options: FrontsOptions
  readonly #mains: Server[] = []
  readonly #fronts = new Map<ListenerId, Front>()
  /** Removed listeners with established connections. */
  readonly #closing = new Set<Promise<void>>()
  readonly #faults = new Map<ListenerId, string>()

  constructor(options: FrontsOptions) {
    this.#options = options
  }

  /** Opens a main listener. Rejects if its address cannot be bound. */
  async openMain(server: Server, address: ListenAddress): Promise<ListenAddress> {
    const bound = await bind(server, address)
    this.#mains.push(server)
    return bound
  }

  /** Opens and closes listeners of other ports; resolves when each of them was tried once. */
  async update(ids: ReadonlySet<ListenerId>): Promise<void> {
    const removed = [...this.#fronts].filter(([id]) => !ids.has(id))
    for (const [id, front] of removed) {
      this.#fronts.delete(id)
      front.ending.abort()
      this.#closeLater(front.server)
    }
    const cleared = removed.filter(([id]) => this.#faults.delete(id))
    if (cleared.length > 0) this.#options.onFaults(this.#faults)
    for (const id of ids) if (!this.#fronts.has(id)) this.#open(id)
    await Promise.all([...this.#fronts.values()].map(async ({ tried }) => tried))
  }

  /** Where a listener of another port is bound. */
  addressOf(id: ListenerId): ListenAddress | undefined {
    return this.#fronts.get(id)?.address
  }

  /** No new connections; resolves when all connections are closed. */
  async close(): Promise<void> {
    for (const { server, ending } of this.#fronts.values()) {
      ending.abort()
      this.#closeLater(server)
    }
    this.#fronts.clear()
    for (const server of this.#mains) this.#closeLater(server)
    await Promise.all(this.#closing)
  }

  #open(id: ListenerId): void {
    const address = this.#options.addressOf(id)
    if (address === undefined) return
    const ending = new AbortController()
    let markTried: () => void = () => undefined
    const tried = new Promise<void>((resolve) => (markTried = resolve))
    const front: Front = { server: this.#options.create(id), ending, tried }
    this.#fronts.set(id, front)
    void this.#keepTrying(id, front, address, markTried)
  }

  async #keepTrying(id: ListenerId, front: Front, address: ListenAddress, markTried: () => void): Promise<void> {
    const { signal } = front.ending
    const attempt = async () => this.#tryToBind(id, front, address).finally(markTried)
    await poll(attempt, { clock: this.#options.clock, intervalMs: RETRY_MS, signal })
    markTried()
    // Removed while it was being bound.
    if (signal.aborted) this.#closeLater(front.server)
  }

  /** Undefined: the address cannot be bound now. */
  async #tryToBind(id: ListenerId, front: Front, address: ListenAddress): Promise<ListenAddress | undefined> {
    try {
      front.address = await bind(front.server, address)
      if (this.#faults.delete(id)) this.#options.onFaults(this.#faults)
      return front.address
    } catch (error) {
      if (front.ending.signal.aborted) return undefined
      const fault = describeFault(error, address)
      const isNew = this.#faults.get(id) !== fault
      this.#faults.set(id, fault)
      if (isNew) this.#options.onFaults(this.#faults)
      return undefined
    }
  }

  #closeLater(server: Server): void {
    if (!server.listening) return
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    this.#closing.add(closed)
    void closed.then(() => this.#closing.delete(closed))
  }
}

async function bind(server: Server, { host, port }: ListenAddress): Promise<ListenAddress> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const address = server.address() as AddressInfo
  return { host: address.address, port: address.port }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use by another process',
  EACCES: 'cannot be bound without the capability CAP_NET_BIND_SERVICE',
  EADDRNOTAVAIL: 'is not an address of this machine',
}

function describeFault(error: unknown, address: ListenAddress): string {
  const { code = '' } = error as NodeJS.ErrnoException
  const reason = REASONS[code] ?? `cannot be bound: ${messageOf(error)}`
  return `${formatAddress(address)} ${reason}`
}
