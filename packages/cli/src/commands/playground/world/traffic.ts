/**
 * A client of a host: it resolves the name, keeps the answer for its TTL, and sends requests at a fixed rate, each on a
 * connection of its own.
 *
 * `tries: one` sends a request to one address of the answer, so that a single address that does not serve is seen as a
 * failed request. `tries: all` continues with the next address when one refuses the connection, as browsers and curl do.
 */
import { get } from 'node:http'
import { type DnsClient, groupRecords, type ServerAddress } from '@seamark/dns'
import { messageOf } from '@seamark/kube'

export interface TrafficOptions {
  readonly host: string
  /** Of the gateways. */
  readonly port: number
  readonly perSecond: number
  readonly tries: 'one' | 'all'
  readonly resolver: DnsClient
  readonly server: ServerAddress
}

export interface TrafficReport {
  readonly sent: number
  readonly failed: number
  /** The first few. */
  readonly failures: readonly string[]
  /** Answered requests, by the text that was answered. */
  readonly answeredBy: ReadonlyMap<string, number>
}

/** What is stopped refuses connections: only a machine that is very busy takes long to answer. */
const REQUEST_TIMEOUT_MS = 10_000
const FAILURES_KEPT = 5

interface CachedAnswer {
  readonly addresses: readonly string[]
  /** Monotonic, ms. */
  readonly expiresMs: number
}

export class TrafficClient {
  readonly #options: TrafficOptions
  readonly #timer: NodeJS.Timeout
  readonly #running = new Set<Promise<void>>()
  readonly #failures: string[] = []
  readonly #answeredBy = new Map<string, number>()
  #sent = 0
  #failed = 0
  #cached: Promise<CachedAnswer> | undefined

  constructor(options: TrafficOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#start(), 1000 / options.perSecond)
  }

  report(): TrafficReport {
    return {
      sent: this.#sent,
      failed: this.#failed,
      failures: [...this.#failures],
      answeredBy: new Map(this.#answeredBy),
    }
  }

  /** Settles when every request has ended. */
  async stop(): Promise<TrafficReport> {
    clearInterval(this.#timer)
    await Promise.all(this.#running)
    return this.report()
  }

  #start(): void {
    this.#sent++
    const running = this.#request()
      .then((answer) => void this.#answeredBy.set(answer, (this.#answeredBy.get(answer) ?? 0) + 1))
      .catch((error: unknown) => {
        this.#failed++
        if (this.#failures.length < FAILURES_KEPT) this.#failures.push(messageOf(error))
      })
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  async #request(): Promise<string> {
    const { host, port, tries } = this.#options
    const addresses = shuffle(await this.#resolve())
    if (addresses.length === 0) throw new Error(`${host} has no address`)
    let failure: unknown
    for (const address of tries === 'one' ? addresses.slice(0, 1) : addresses) {
      try {
        return await requestFrom(address, port, host)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  async #resolve(): Promise<readonly string[]> {
    const cached = await this.#cached
    if (cached !== undefined && performance.now() < cached.expiresMs) return cached.addresses
    // One query at a time: the requests that come meanwhile wait for its answer.
    if (cached === (await this.#cached)) this.#cached = this.#query()
    return (await (this.#cached as Promise<CachedAnswer>)).addresses
  }

  async #query(): Promise<CachedAnswer> {
    const { resolver, server, host } = this.#options
    try {
      const { message } = await resolver.query({ server, name: host, type: 'A' })
      const [set] = groupRecords(message.answers)
      const ttlMs = (set?.ttl ?? 0) * 1000
      return { addresses: set === undefined ? [] : [...set.values], expiresMs: performance.now() + ttlMs }
    } catch (error) {
      this.#cached = undefined
      throw error
    }
  }
}

async function requestFrom(address: string, port: number, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get({ host: address, port, headers: { host }, agent: false, timeout: REQUEST_TIMEOUT_MS })
    request.on('timeout', () => request.destroy(new Error(`${address} did not answer in ${REQUEST_TIMEOUT_MS} ms`)))
    request.on('error', reject)
    request.on('response', (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve(text)
        else reject(new Error(`${address} answered ${response.statusCode}`))
      })
    })
  })
}

function shuffle(values: readonly string[]): string[] {
  return values
    .map((value) => ({ value, order: Math.random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ value }) => value)
}
