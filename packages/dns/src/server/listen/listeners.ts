/**
 * The sockets of a server: UDP and TCP on each of its addresses, on the same port.
 *
 * Guarantees: `listen` resolves when every address answers, and rejects with NETWORK and nothing left open when one cannot be
 * bound. With worker threads the UDP sockets only reserve the port; `closeUdp` closes them when the threads answer.
 */
import { DnsError } from '../../error.ts'
import { listenTcp, type TcpListener, type TcpOptions } from './tcp.ts'
import { listenUdp, type UdpListener, type UdpOptions } from './udp.ts'

export interface ListenAddress {
  readonly address: string
  /** 0 picks a free port, the same for UDP and TCP. */
  readonly port: number
}

/** What both kinds of socket need, without the address. */
export type ListenerOptions = Omit<UdpOptions, 'address' | 'port'> & Omit<TcpOptions, 'address' | 'port'>

interface Pair {
  readonly udp: UdpListener
  readonly tcp: TcpListener
}

/** A port that is free for UDP may be in use for TCP: with port 0 another pair is tried. */
const PORT_TRIES = 20

export class Listeners {
  readonly addresses: readonly ListenAddress[]
  readonly #pairs: readonly Pair[]
  #hasUdp = true

  private constructor(pairs: readonly Pair[]) {
    this.#pairs = pairs
    this.addresses = pairs.map(({ udp: { address, port } }) => ({ address, port }))
  }

  static async listen(addresses: readonly ListenAddress[], options: ListenerOptions): Promise<Listeners> {
    const pairs: Pair[] = []
    for (const { address, port } of addresses) {
      try {
        pairs.push(await listenPair(address, port, options))
      } catch (cause) {
        await new Listeners(pairs).close()
        const why = cause instanceof Error ? cause.message : String(cause)
        throw new DnsError('NETWORK', `cannot listen on ${address} port ${port}: ${why}`, { cause })
      }
    }
    return new Listeners(pairs)
  }

  /** Open TCP connections. */
  get connections(): number {
    return this.#pairs.reduce((sum, { tcp }) => sum + tcp.connections(), 0)
  }

  async closeUdp(): Promise<void> {
    if (!this.#hasUdp) return
    this.#hasUdp = false
    await Promise.all(this.#pairs.map(async ({ udp }) => udp.close()))
  }

  async close(): Promise<void> {
    await Promise.all([this.closeUdp(), ...this.#pairs.map(async ({ tcp }) => tcp.close())])
  }
}

async function listenPair(address: string, port: number, options: ListenerOptions): Promise<Pair> {
  for (let attempt = 1; ; attempt++) {
    const udp = await listenUdp({ ...options, address, port })
    try {
      return { udp, tcp: await listenTcp({ ...options, address, port: udp.port }) }
    } catch (error) {
      await udp.close()
      if (port !== 0 || attempt === PORT_TRIES) throw error
    }
  }
}
